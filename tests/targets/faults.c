/* SPDX-License-Identifier: MIT */
/*
 * A program that uses faults, each at a known instruction: loads through bad pointers, ud2, int3, hlt and division by zero, with
 * handlers that check the pc and siginfo, on the requested stack; a handler that repairs and returns; children that the fault
 * kills. All results are compared with those without probes.
 *
 *	faults SECONDS [KIND]	KIND: at SIGTERM, die of this fault
 */
#include "target.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>

static atomic_ulong failures, faults;
static time_t until;

static void bad(const char *what, int line)
{
	if (atomic_fetch_add(&failures, 1) < 5)
		fprintf(stderr, "faults: line %d: %s\n", line, what);
}
#define CHECK(x) ((x) ? (void)0 : bad(#x, __LINE__))

/* ---- what is probed: each begins with the instruction that faults ----------------------------------------------------- */

uint64_t fault_load(const uint64_t *p, uint64_t n);
uint64_t fault_divide(uint64_t a, uint64_t b);
void fault_ud2(void);
void fault_ud1(void);
void fault_hlt(void);
void fault_int3(void);
uint64_t fault_guarded(const uint64_t *p);
#define FUNCTION(name, code)                                                                                                     \
	".globl " name "\n.type " name ", @function\n" name ":\n" code "\n.size " name ", . - " name "\n.balign 16\n"
__asm__(".pushsection .text\n.balign 16\n" FUNCTION("fault_load", "mov (%rdi),%rax\n add %rsi,%rax\n ret")
                FUNCTION("fault_divide", "divq %rsi\n ret") FUNCTION("fault_ud2", "ud2\n nop\n ret")
                        FUNCTION("fault_ud1", "ud1 %eax,%eax\n nop\n ret") FUNCTION("fault_hlt", "hlt\n nop\n ret")
                                FUNCTION("fault_int3", "int3\n nop\n ret")
                                        FUNCTION("fault_guarded", "nop\n mov (%rdi),%rax\n ret") "\n.popsection\n");

/* ---- handlers --------------------------------------------------------------------------------------------------------- */

struct expected {
	int sig, code;
	uintptr_t pc, addr;
	int skip; /* resumes so many bytes after the pc; 0: jumps out */
	void *repair;
};
static __thread volatile struct expected expected;
static __thread sigjmp_buf out;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	sigset_t now;
	stack_t stack;
	CHECK(sig == expected.sig && info->si_signo == sig);
	CHECK(info->si_code == expected.code);
	CHECK((uintptr_t)uc->uc_mcontext.gregs[REG_RIP] == expected.pc);
	CHECK((uintptr_t)info->si_addr == expected.addr);
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &now) && sigismember(&now, SIGUSR1) == 1);
	CHECK(!sigaltstack(NULL, &stack) && !!(stack.ss_flags & SS_ONSTACK) == (sig == SIGSEGV && stack.ss_size));
	atomic_fetch_add(&faults, 1);
	if (expected.repair)
		CHECK(!mprotect(expected.repair, 4096, PROT_READ | PROT_WRITE));
	else if (expected.skip)
		uc->uc_mcontext.gregs[REG_RIP] += expected.skip;
	else
		siglongjmp(out, 1);
}

static void expect(int sig, int code, void *pc, void *addr, int skip)
{
	expected.sig = sig;
	expected.code = code;
	expected.pc = (uintptr_t)pc;
	expected.addr = (uintptr_t)addr;
	expected.skip = skip;
	expected.repair = NULL;
}

static void handle_all(void)
{
	static const int sigs[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
	for (size_t i = 0; i < sizeof(sigs) / sizeof(*sigs); i++) {
		struct sigaction now,
		        new = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | (sigs[i] == SIGSEGV ? SA_ONSTACK : 0)};
		sigaddset(&new.sa_mask, SIGUSR1);
		CHECK(!sigaction(sigs[i], &new, NULL) && !sigaction(sigs[i], NULL, &now) && now.sa_sigaction == on_fault);
		CHECK((now.sa_flags & ~0x04000000) == new.sa_flags); /* SA_RESTORER */
	}
}

/* ---- rounds ----------------------------------------------------------------------------------------------------------- */

static void loads(uint64_t n)
{
	uint64_t value = n;
	CHECK(fault_load(&value, 5) == n + 5);
	expect(SIGSEGV, SEGV_MAPERR, (void *)fault_load, (void *)24, 0);
	if (!sigsetjmp(out, 1)) {
		fault_load((const uint64_t *)24, 0);
		bad("a load that did not fault", __LINE__);
	}
}

static void signals_by_design(void)
{
	volatile uint64_t four = 4;
	expect(SIGILL, ILL_ILLOPN, (void *)fault_ud2, (void *)fault_ud2, 2);
	fault_ud2();
	expect(SIGILL, ILL_ILLOPN, (void *)fault_ud1, (void *)fault_ud1, 3);
	fault_ud1();
	expect(SIGSEGV, SI_KERNEL, (void *)fault_hlt, NULL, 1);
	fault_hlt();
	expect(SIGTRAP, SI_KERNEL, (char *)fault_int3 + 1, NULL, 1);
	fault_int3();
	expect(SIGFPE, FPE_INTDIV, (void *)fault_divide, (void *)fault_divide, 3);
	fault_divide(four, 0);
}

static void repairs(void)
{
	char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect(SIGSEGV, SEGV_ACCERR, (char *)fault_guarded + 1, page, 0);
	expected.repair = page;
	CHECK(fault_guarded((const uint64_t *)(void *)page) == 0);
	munmap(page, 4096);
}

static void masks(void)
{
	sigset_t all, old, now;
	sigfillset(&all);
	CHECK(!pthread_sigmask(SIG_BLOCK, &all, &old) && !sigismember(&old, SIGSEGV));
	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &now) && sigismember(&now, SIGSEGV) == 1 && sigismember(&now, SIGILL) == 1);
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, &now) && sigismember(&now, SIGSEGV) == 1);
	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &now) && !sigismember(&now, SIGSEGV) && !sigismember(&now, SIGFPE));
}

static void *rounds(void *with_stack)
{
	stack_t stack = {.ss_sp = with_stack ? malloc(65536) : NULL, .ss_size = 65536};
	if (with_stack)
		CHECK(!sigaltstack(&stack, NULL));
	for (uint64_t n = 0; !target_stop && time(NULL) < until; n++) {
		loads(n);
		signals_by_design();
		repairs();
		masks();
		target_sleep_us(200);
	}
	return NULL;
}

/* ---- those that die --------------------------------------------------------------------------------------------------- */

static void die_of(const char *kind)
{
	static const int sigs[] = {SIGSEGV, SIGILL, SIGFPE, SIGTRAP};
	const bool kept = strstr(kind, "blocked") != NULL;
	sigset_t all;
	sigfillset(&all);
	for (size_t i = 0; !kept && i < sizeof(sigs) / sizeof(*sigs); i++)
		signal(sigs[i], strstr(kind, "ignored") ? SIG_IGN : SIG_DFL);
	if (kept)
		pthread_sigmask(SIG_BLOCK, &all, NULL);
	if (!strncmp(kind, "load", 4))
		fault_load((const uint64_t *)24, 0);
	else if (!strncmp(kind, "ud2", 3))
		fault_ud2();
	else if (!strncmp(kind, "int3", 4))
		fault_int3();
	else
		fault_divide(4, 0);
}

static void dying_child(const char *kind, int sig)
{
	int status = 0;
	const pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		alarm(20);
		die_of(kind);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == sig);
}

static void dying_children(void)
{
	dying_child("load", SIGSEGV);
	dying_child("load ignored", SIGSEGV);
	dying_child("load blocked", SIGSEGV);
	dying_child("ud2", SIGILL);
	dying_child("ud2 blocked", SIGILL);
	dying_child("divide", SIGFPE);
	dying_child("int3 ignored", SIGTRAP);
}

int main(int argc, char **argv)
{
	pthread_t with, without;
	until = time(NULL) + target_number(argc, argv, 1, 3);
	target_stop_on_term();
	handle_all();
	target_ready();
	if (argc > 2) {
		while (!target_stop && time(NULL) < until)
			target_sleep_us(10000);
		die_of(argv[2]);
	}
	if (pthread_create(&with, NULL, rounds, argv) || pthread_create(&without, NULL, rounds, NULL))
		return 1;
	while (!target_stop && time(NULL) < until) {
		dying_children();
		target_sleep_us(20000);
	}
	pthread_join(with, NULL);
	pthread_join(without, NULL);
	printf("faults %lu\n", atomic_load(&faults));
	printf("RESULT %s\n", atomic_load(&failures) ? "BAD" : "OK");
	return atomic_load(&failures) != 0;
}

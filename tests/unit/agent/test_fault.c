/* SPDX-License-Identifier: MIT */
/* Loads that may fault, and the program's own faults, with the handler of the blob that is mapped into targets. */
#include "trap_blob.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

typedef void (*helper_fn)(struct dp_capture *, const struct dp_op *);

#define TAKEN (DP_TRAP_BIT | DP_FAULT_BITS | DP_SHOWN_BITS)

static volatile sig_atomic_t own, on_alternate;
static volatile uintptr_t seen_pc, seen_addr;
static sigjmp_buf out;

/* A load with a fix-up, and an instruction in a "stub" that stands for one elsewhere. */
uint64_t fault_load(const uint64_t *from);
extern const char fault_pc[], fault_to[];
void moved_ud2(void);
extern const char moved_pc[], moved_original[];
__asm__(".pushsection .text\nfault_load:\n.globl fault_pc, fault_to, moved_pc, moved_original\n"
        "	mov $7,%eax\nfault_pc:	mov (%rdi),%rax\n	ret\nfault_to:	neg %rax\n	ret\n"
        "moved_ud2:\nmoved_pc:	ud2\nmoved_original:	ud2\n	ret\n.popsection\n");

static void begin(void)
{
	trap_blob();
	trap->table[0] = (struct dp_fixup){at(fault_pc), at(fault_to)};
	trap->table[1] = (struct dp_fixup){at(moved_pc), at(moved_original)};
	trap->fixups = at(&trap->table[0]);
	trap->pairs = at(&trap->table[1]);
	trap->nfixups = trap->npairs = trap->armed = 1;
	trap->signals = TAKEN;
	const struct dp_trap_action ours = {at(symbol(DP_SYM_TRAP)), DP_SA_SIGINFO | DP_SA_RESTORER,
	                                    at(symbol(DP_SYM_TRAP_RESTORER)), UINT64_MAX};
	for (unsigned sig = 1; sig < DP_TRAP_SIGNALS; sig++)
		if (TAKEN & DP_TRAP_BIT_OF(sig)) {
			syscall(SYS_rt_sigaction, sig, &ours, NULL, 8L);
			trap->action[sig - 1] = (struct dp_trap_action){0};
		}
}

void fault_restore(void);
__asm__(".pushsection .text\nfault_restore:	mov $15,%rax\n	syscall\n.popsection\n");

static void handle(int sig, void (*fn)(int, siginfo_t *, void *), uint64_t flags)
{
	const struct dp_trap_action new = {at((const void *)(uintptr_t)fn), DP_SA_RESTORER | DP_SA_SIGINFO | flags,
	                                   at((const void *)(uintptr_t)fault_restore), 0};
	cr_assert_eq(call(SYS_rt_sigaction, (uint64_t)sig, at(&new), 0, 8), 0);
}

static void *bad_page(void)
{
	return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* ---- faults of our loads ---- */

Test(fault, load_goes_on_at_its_fixup, .init = begin)
{
	uint64_t good = 42;
	cr_assert_eq(fault_load(&good), 42);
	cr_assert_eq(fault_load(bad_page()), (uint64_t)-7, "the registers are those before the load");
	cr_assert_eq(fault_load((const void *)UINT64_C(0x8000000000000000)), (uint64_t)-7, "the address is not canonical");
}

Test(fault, load_does_not_reach_the_program_s_handler, .init = begin)
{
	stack_t alt = {.ss_sp = malloc(65536), .ss_size = 65536};
	sigaltstack(&alt, NULL);
	handle(SIGSEGV, (void (*)(int, siginfo_t *, void *))(uintptr_t)abort, DP_SA_ONSTACK);
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(fault_load(NULL), (uint64_t)-7);
}

static uint64_t read_one(uint64_t addr, uint32_t size, uint8_t *to)
{
	static struct dp_agent mine;
	static union {
		struct dp_record record;
		uint8_t bytes[4096];
	} r;
	memset(&r, 0, sizeof(r));
	mine.pid = (uint32_t)getpid();
	const struct dp_probe_desc desc = {.agent = at(&mine)};
	struct dp_capture capture = {.cursor = r.record.payload + 8, .record = &r.record, .desc = &desc};
	const struct dp_op op = {.addr = addr, .size = size};
	((helper_fn)(uintptr_t)symbol(DP_SYM_READ))(&capture, &op);
	memcpy(to, r.record.payload + 8, size);
	return *(uint64_t *)(void *)r.record.payload;
}

Test(fault, helper_reads_without_a_system_call_and_says_what_is_not_there, .init = begin)
{
	uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), to[64];
	for (int i = 0; i < 4096; i++)
		page[i] = (uint8_t)(i * 7 + 1);
	mprotect(page + 4096, 4096, PROT_NONE);
	for (uint32_t size = 1; size <= 64; size++) {
		cr_assert_eq(read_one(at(page) + 4096 - size, size, to), 0);
		cr_assert_arr_eq(to, page + 4096 - size, size);
		cr_assert_eq(read_one(at(page) + 4096 - size + 1, size, to), 1, "the last byte is not mapped");
		for (uint32_t i = 0; i < size; i++)
			cr_assert_eq(to[i], 0);
	}
}

Test(fault, file_that_was_cut, .init = begin)
{
	const int fd = memfd_create("cut", 0);
	uint8_t to[8];
	cr_assert_eq(ftruncate(fd, 4096), 0);
	void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_eq(read_one(at(page), 8, to), 0);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(read_one(at(page), 8, to), 1, "SIGBUS is handled as well");
}

/* ---- the program's faults ---- */

static void on_fault(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	stack_t now;
	own += sig == SIGSEGV || sig == SIGILL;
	seen_pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
	seen_addr = (uintptr_t)info->si_addr;
	sigaltstack(NULL, &now);
	on_alternate = (now.ss_flags & SS_ONSTACK) != 0;
	siglongjmp(out, 1);
}

static uint64_t raw_mask(void)
{
	uint64_t mask = 0;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8L);
	return mask;
}

Test(fault, program_s_own_goes_to_its_handler_on_its_stack, .init = begin)
{
	stack_t alt = {.ss_sp = malloc(65536), .ss_size = 65536};
	char *volatile bad = bad_page();
	sigaltstack(&alt, NULL);
	for (volatile int onstack = 0; onstack <= 1; onstack++) {
		handle(SIGSEGV, on_fault, onstack ? DP_SA_ONSTACK : 0);
		if (!sigsetjmp(out, 1))
			*(volatile char *)(bad + 5) = 1;
		cr_assert_eq(own, onstack + 1);
		cr_assert_eq(seen_addr, (uintptr_t)bad + 5);
		cr_assert_eq(on_alternate, onstack);
		cr_assert_eq(raw_mask() & TAKEN, 0);
	}
}

Test(fault, displaced_instruction_is_shown_at_its_own_place, .init = begin)
{
	handle(SIGILL, on_fault, 0);
	if (!sigsetjmp(out, 1))
		moved_ud2();
	cr_assert_eq(own, 1);
	cr_assert_eq(seen_pc, (uintptr_t)moved_original);
	cr_assert_eq(seen_addr, (uintptr_t)moved_original);
}

static int status_of(void (*act)(void))
{
	int status = 0;
	const pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_DUMPABLE, 0);
		alarm(20);
		act();
		_exit(42);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void fault_for_nobody(void)
{
	*(volatile int *)bad_page() = 1;
}

static void fault_ignored(void)
{
	const struct dp_trap_action ignore = {1, 0, 0, 0};
	call(SYS_rt_sigaction, SIGSEGV, at(&ignore), 0, 8);
	raise(SIGSEGV);
	fault_for_nobody();
}

static void fault_blocked(void)
{
	const uint64_t all = UINT64_MAX;
	handle(SIGSEGV, (void (*)(int, siginfo_t *, void *))(uintptr_t)_exit, 0);
	call(SYS_rt_sigprocmask, SIG_BLOCK, at(&all), 0, 8);
	fault_for_nobody();
}

static void fault_again(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
	if (fault_load(NULL) != (uint64_t)-7 || own++)
		_exit(1);
	fault_for_nobody();
}

static void fault_in_handler(void)
{
	handle(SIGSEGV, fault_again, 0);
	fault_for_nobody();
}

static void sent_to_nobody(void)
{
	raise(SIGSEGV);
}

Test(fault, ends_the_program_as_without_us, .init = begin)
{
	void (*const act[])(void) = {fault_for_nobody, fault_ignored, fault_blocked, fault_in_handler, sent_to_nobody};
	for (size_t i = 0; i < sizeof(act) / sizeof(*act); i++) {
		const int status = status_of(act[i]);
		cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "%zu: %x", i, status);
	}
}

/* A handler that repairs the fault and returns: after that, no handler counts as running. */
static void *volatile repaired;
static void repair(int sig, siginfo_t *info, void *context)
{
	const uint64_t all = UINT64_MAX;
	uint64_t old = 0;
	(void)sig, (void)context;
	own++;
	call(SYS_rt_sigprocmask, SIG_BLOCK, at(&all), at(&old), 8);
	cr_assert(old & DP_TRAP_BIT_OF(SIGSEGV), "it is blocked in its handler");
	call(SYS_rt_sigprocmask, SIG_SETMASK, at(&old), 0, 8);
	mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE);
}

Test(fault, handler_that_repairs_is_called_each_time, .init = begin)
{
	uint64_t old = 0;
	handle(SIGSEGV, repair, 0);
	for (int i = 1; i <= 50; i++) {
		repaired = bad_page();
		*(volatile int *)repaired = 1;
		cr_assert_eq(own, i);
	}
	call(SYS_rt_sigprocmask, SIG_BLOCK, 0, at(&old), 8);
	cr_assert_not(old & (DP_TRAP_BIT_OF(SIGSEGV) | DP_TRAP_IN_SEGV));
	cr_assert_eq(raw_mask() & (TAKEN | DP_TRAP_IN_SEGV), 0);
}

Test(fault, blocking_is_told_and_not_done, .init = begin)
{
	const uint64_t some = DP_TRAP_BIT_OF(SIGSEGV) | DP_TRAP_BIT_OF(SIGFPE) | DP_TRAP_BIT_OF(SIGUSR1),
	               one = DP_TRAP_BIT_OF(SIGFPE);
	uint64_t old = 0;
	cr_assert_eq(call(SYS_rt_sigprocmask, SIG_BLOCK, at(&some), 0, 8), 0);
	cr_assert_eq(call(SYS_rt_sigprocmask, SIG_UNBLOCK, at(&one), at(&old), 8), 0);
	cr_assert_eq(old & (TAKEN | some), some);
	cr_assert_eq(raw_mask() & (TAKEN | some), DP_TRAP_BIT_OF(SIGUSR1));
	cr_assert_eq(fault_load(NULL), (uint64_t)-7, "although the program has blocked it");
	cr_assert_eq(call(SYS_rt_sigprocmask, SIG_SETMASK, at(&one), at(&old), 8), 0);
	cr_assert_eq(old & (TAKEN | some), some & ~one);
	cr_assert_eq(call(SYS_rt_sigprocmask, SIG_BLOCK, 0, at(&old), 8), 0);
	cr_assert_eq(old & (TAKEN | some), one);
}

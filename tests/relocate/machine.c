/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/ucontext.h>
#include <unistd.h>

#define PAGE       4096
#define COMPONENTS UINT64_C(0xe7) /* x87, SSE, AVX, mask registers, zmm; not bounds, protection keys, tiles */
#define TICK_US    100000
#define PATIENCE   3 /* ticks */

uint64_t machine_home, machine_mask;
void machine_enter(const struct machine_state *start);
void machine_back(void);

/* machine_enter(start): offsets are those of struct machine_state. */
__asm__(".pushsection .text\n"
        ".type machine_enter, @function\n"
        "machine_enter:\n"
        "	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
        "	mov %rsp, machine_home(%rip)\n"
        "	mov machine_mask(%rip), %eax\n"
        "	xor %edx, %edx\n"
        "	xrstor64 192(%rdi)\n"
        "	mov %ss, %eax\n	push %rax\n"
        "	pushq 32(%rdi)\n"
        "	pushq 136(%rdi)\n"
        "	mov %cs, %eax\n	push %rax\n"
        "	pushq 128(%rdi)\n"
        "	mov 0(%rdi), %rax\n	mov 8(%rdi), %rcx\n	mov 16(%rdi), %rdx\n	mov 24(%rdi), %rbx\n"
        "	mov 40(%rdi), %rbp\n	mov 48(%rdi), %rsi\n"
        "	mov 64(%rdi), %r8\n	mov 72(%rdi), %r9\n	mov 80(%rdi), %r10\n	mov 88(%rdi), %r11\n"
        "	mov 96(%rdi), %r12\n	mov 104(%rdi), %r13\n	mov 112(%rdi), %r14\n	mov 120(%rdi), %r15\n"
        "	mov 56(%rdi), %rdi\n"
        "	iretq\n"
        ".type machine_back, @function\n"
        "machine_back:\n"
        "	push $0x202\n	popfq\n" /* a signal's return keeps the nested-task flag, and with it iretq would fault */
        "	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n	"
        "ret\n.popsection\n");
_Static_assert(offsetof(struct machine_state, x) == 192 && offsetof(struct machine_state, rip) == 128, "as in machine_enter");

static struct {
	unsigned bit;
	size_t at, n;
} part[] = {{PART_X87, X_ST, 128}, {PART_SSE, X_XMM, 256}, {PART_YMM, X_YMM, 256},
            {PART_K, 0, 64},       {PART_ZMM, 0, 512},     {PART_HIGH, 0, 1024}};
#define PARTS (sizeof(part) / sizeof(*part))

static struct machine_state *result;
static volatile bool inside, timed_out;
static volatile unsigned runs;

static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

uint64_t machine_components(void)
{
	return machine_mask;
}

size_t machine_at(unsigned bit)
{
	size_t i = 0;
	while (part[i].bit != bit)
		i++;
	return part[i].at;
}

/* Processors with the same registers store them at different offsets. Returns false if a component does not fit. */
static bool find_parts(void)
{
	unsigned a, b, c, d;
	for (size_t i = 0; i < PARTS; i++) {
		if (part[i].bit < PART_K || !(machine_mask & (UINT64_C(1) << part[i].bit)))
			continue;
		__cpuid_count(0xd, part[i].bit, a, b, c, d);
		if (a != part[i].n || b < X_YMM || b + a > MACHINE_XSAVE)
			return false;
		part[i].at = b;
	}
	return true;
}

bool machine_timed_out(void)
{
	bool was = timed_out;
	timed_out = false;
	return was;
}

/* The frame does not contain components in their initial state. */
static void take_vectors(const uint8_t *frame)
{
	uint64_t there;
	const uint16_t fcw = 0x37f;
	memcpy(&there, frame + X_HEADER, sizeof(there));
	memcpy(result->x, frame, X_XMM);
	memcpy(result->x + X_HEADER, frame + X_HEADER, 64);
	for (size_t i = 0; i < PARTS; i++) {
		if (!part[i].at)
			continue;
		if (there & machine_mask & (UINT64_C(1) << part[i].bit))
			memcpy(result->x + part[i].at, frame + part[i].at, part[i].n);
		else
			memset(result->x + part[i].at, 0, part[i].n);
	}
	if (there & 1)
		return;
	memset(result->x, 0, X_MXCSR);
	memcpy(result->x + X_FCW, &fcw, sizeof(fcw));
}

/* Returns to machine_enter()'s caller, with an untouched vector state. */
static void go_home(ucontext_t *uc)
{
	uint8_t *frame = (uint8_t *)uc->uc_mcontext.fpregs;
	const uint32_t mxcsr = 0x1f80;
	uint64_t there;
	memcpy(&there, frame + X_HEADER, sizeof(there));
	there &= ~COMPONENTS;
	memcpy(frame + X_HEADER, &there, sizeof(there));
	memcpy(frame + X_MXCSR, &mxcsr, sizeof(mxcsr));
	uc->uc_mcontext.gregs[REG_RIP] = (long long)(uintptr_t)machine_back;
	uc->uc_mcontext.gregs[REG_RSP] = (long long)machine_home;
	uc->uc_mcontext.gregs[REG_EFL] = 0x202;
	inside = false;
}

static void leave(int sig, siginfo_t *info, void *data)
{
	ucontext_t *uc = data;
	if (!inside) { /* a fault of the test itself */
		signal(sig, SIG_DFL);
		return;
	}
	for (int i = 0; i < 16; i++)
		result->gpr[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	result->rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	result->flags = (uint64_t)uc->uc_mcontext.gregs[REG_EFL];
	result->trap = (uint64_t)uc->uc_mcontext.gregs[REG_TRAPNO];
	result->error = (uint64_t)uc->uc_mcontext.gregs[REG_ERR];
	result->signal = sig;
	result->code = info->si_code;
	result->fault = (uint64_t)info->si_addr;
	take_vectors((const uint8_t *)uc->uc_mcontext.fpregs);
	go_home(uc);
}

/* Ends code that does not end by itself. */
static void tick(int sig, siginfo_t *info, void *data)
{
	static unsigned seen, ticks;
	(void)sig;
	(void)info;
	ticks = inside && seen == runs ? ticks + 1 : 0;
	seen = runs;
	if (ticks < PATIENCE)
		return;
	ticks = 0;
	timed_out = true;
	go_home(data);
}

static bool map(uint64_t addr, size_t size, int prot)
{
	return mmap((void *)addr, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)addr;
}

static void install(void)
{
	static uint8_t stack[0x20000];
	static const int ends[] = {SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_ONSTACK | SA_SIGINFO};
	const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	const struct itimerval timer = {{0, TICK_US}, {0, TICK_US}};
	sigfillset(&action.sa_mask);
	sigaltstack(&alternate, NULL);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaction(ends[i], &action, NULL);
	action.sa_sigaction = tick;
	action.sa_flags |= SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

bool machine_setup(void)
{
	unsigned a, b, c, d;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	machine_mask = a & COMPONENTS;
	install();
	return find_parts() && map(MACHINE_SANDBOX, MACHINE_ROOM, PROT_READ | PROT_WRITE) &&
	       map(MACHINE_CODE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) &&
	       map(MACHINE_NEAR, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) &&
	       map(MACHINE_FAR, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) && !syscall(SYS_arch_prctl, ARCH_SET_GS, MACHINE_GS);
}

void machine_run(const struct machine_state *start, struct machine_state *end)
{
	result = end;
	runs++;
	inside = true;
	machine_enter(start);
}

/* SPDX-License-Identifier: MIT */
#include "helper_exec.h"

#include "helper_text.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <unistd.h>

#define PAGE          4096u
#define STATE_FLAGS   UINT64_C(0x8d5) /* CF PF AF ZF SF OF */
#define XSTATE_HEADER 512
#define XSTATE_YMM    576

#define XSTATE_HAS_YMM 4

static void *operand;
static struct exec_state *current;
static bool has_avx;
static ucontext_t home;
static struct _libc_fpstate home_fp;

static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/* SIGUSR1: enters the code. */
static void enter(int sig, siginfo_t *info, void *data)
{
	ucontext_t *uc = data;
	(void)sig;
	(void)info;
	home = *uc;
	home_fp = *uc->uc_mcontext.fpregs;
	for (int i = 0; i < 16; i++)
		uc->uc_mcontext.gregs[order[i]] = (long long)current->gpr[i];
	uc->uc_mcontext.gregs[REG_RIP] = (long long)current->rip;
	uc->uc_mcontext.gregs[REG_EFL] = (long long)((current->flags & STATE_FLAGS) | 0x202);
	memcpy(uc->uc_mcontext.fpregs->_xmm, current->xmm, sizeof(current->xmm));
	if (!has_avx)
		return;
	uint8_t *xstate = (uint8_t *)uc->uc_mcontext.fpregs;
	xstate[XSTATE_HEADER] |= XSTATE_HAS_YMM;
	memcpy(xstate + XSTATE_YMM, current->ymm, sizeof(current->ymm));
}

/* Any signal that ends the code: returns to the test. */
static void leave(int sig, siginfo_t *info, void *data)
{
	ucontext_t *uc = data;
	const uint8_t *xstate = (const uint8_t *)uc->uc_mcontext.fpregs;
	for (int i = 0; i < 16; i++)
		current->gpr[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	current->rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	current->flags = (uint64_t)uc->uc_mcontext.gregs[REG_EFL];
	current->signal = sig;
	current->fault = sig == SIGSEGV || sig == SIGBUS ? (uint64_t)info->si_addr : 0;
	memcpy(current->xmm, uc->uc_mcontext.fpregs->_xmm, sizeof(current->xmm));
	memset(current->ymm, 0, sizeof(current->ymm));
	if (has_avx && (xstate[XSTATE_HEADER] & XSTATE_HAS_YMM))
		memcpy(current->ymm, xstate + XSTATE_YMM, sizeof(current->ymm));
	memcpy(uc->uc_mcontext.gregs, home.uc_mcontext.gregs, sizeof(home.uc_mcontext.gregs));
	memcpy(uc->uc_mcontext.fpregs, &home_fp, offsetof(struct _libc_fpstate, __glibc_reserved1));
}

static void map(uint64_t addr, size_t size, int prot)
{
	if (mmap((void *)addr, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)addr)
		abort();
}

void exec_setup(void)
{
	static uint8_t stack[0x20000];
	static const int ends[] = {SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	struct sigaction action = {.sa_sigaction = enter, .sa_flags = SA_ONSTACK | SA_SIGINFO | SA_NODEFER};
	has_avx = __builtin_cpu_supports("avx");
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	action.sa_sigaction = leave;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaction(ends[i], &action, NULL);
	map(EXEC_SCRATCH, EXEC_SCRATCH_SIZE, PROT_READ | PROT_WRITE);
	map(EXEC_CODE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	map(EXEC_NEAR, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	map(EXEC_FAR, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static uint64_t scratch_at(uint64_t word)
{
	return EXEC_SCRATCH + EXEC_SCRATCH_SIZE / 2 + word % 1024 * 8;
}

static uint64_t scratch_pointer(uint64_t *seed)
{
	return scratch_at(helper_random(seed));
}

static void fill(void *at, size_t size, uint64_t *seed)
{
	uint64_t *word = at;
	for (size_t i = 0; i < size / 8; i++) {
		const uint64_t r = helper_random(seed);
		word[i] = r >> 40 & 1 ? scratch_at(r) : r;
	}
}

void exec_random(struct exec_state *state, uint64_t *seed)
{
	memset(state, 0, sizeof(*state));
	for (int i = 0; i < 16; i++) {
		uint64_t kind = helper_random(seed) % 8;
		state->gpr[i] = kind < 5 ? scratch_pointer(seed) : kind < 6 ? helper_random(seed) % 64 : helper_random(seed);
	}
	state->gpr[1] = helper_random(seed) % 4; /* counts are small */
	state->gpr[4] = scratch_pointer(seed);
	state->flags = helper_random(seed) & STATE_FLAGS;
	for (int i = 0; i < 16; i++)
		for (int k = 0; k < 2; k++) {
			uint64_t v = helper_random(seed);
			memcpy(&state->xmm[i][8 * k], &v, sizeof(v));
			v = has_avx ? helper_random(seed) : 0;
			memcpy(&state->ymm[i][8 * k], &v, sizeof(v));
		}
	fill((void *)EXEC_SCRATCH, EXEC_SCRATCH_SIZE, seed);
}

void exec_code(uint64_t addr, const uint8_t *bytes, size_t n)
{
	memset((void *)(addr & ~(uint64_t)(PAGE - 1)), 0xcc, PAGE);
	memcpy((void *)addr, bytes, n);
}

bool exec_map(uint64_t addr, uint64_t *seed)
{
	void *want = (void *)(addr & ~(uint64_t)(PAGE - 1));
	if (mmap(want, EXEC_OPERAND, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != want)
		return false;
	fill(want, EXEC_OPERAND, seed);
	operand = want;
	return true;
}

void exec_unmap(void)
{
	if (operand)
		munmap(operand, EXEC_OPERAND);
	operand = NULL;
}

void exec_save(struct exec_memory *memory)
{
	memcpy(memory->scratch, (void *)EXEC_SCRATCH, EXEC_SCRATCH_SIZE);
	if (operand)
		memcpy(memory->operand, operand, EXEC_OPERAND);
}

void exec_restore(const struct exec_memory *memory)
{
	memcpy((void *)EXEC_SCRATCH, memory->scratch, EXEC_SCRATCH_SIZE);
	if (operand)
		memcpy(operand, memory->operand, EXEC_OPERAND);
}

bool exec_same(const struct exec_memory *memory)
{
	return !memcmp((void *)EXEC_SCRATCH, memory->scratch, EXEC_SCRATCH_SIZE) &&
	       (!operand || !memcmp(operand, memory->operand, EXEC_OPERAND));
}

void exec_run(struct exec_state *state)
{
	current = state;
	raise(SIGUSR1);
}

/* SPDX-License-Identifier: MIT */
/*
 * Executes machine code from a chosen machine state, in this process. A signal handler's return loads the state and enters the
 * code. The code ends with an int3 or a fault; that signal's handler saves the state and returns.
 */
#ifndef DP_TESTS_TRAMPOLINE_HELPER_EXEC_H
#define DP_TESTS_TRAMPOLINE_HELPER_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXEC_SCRATCH      UINT64_C(0x150000000000) /* data and stack: registers point here, and nothing else is near */
#define EXEC_SCRATCH_SIZE 0x20000
#define EXEC_OPERAND      0x2000 /* bytes that exec_map() maps */
#define EXEC_CODE         UINT64_C(0x200000000000)
#define EXEC_NEAR         (EXEC_CODE + 0x100000)
#define EXEC_FAR          UINT64_C(0x500000000000)

/* In the order of struct dp_regs: rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15 */
struct exec_state {
	uint64_t gpr[16];
	uint64_t rip, flags;
	uint64_t fault; /* si_addr of a fault */
	int signal;     /* the signal that ended the code */
	uint8_t xmm[16][16];
	uint8_t ymm[16][16]; /* upper halves */
};

/* Maps scratch memory and code pages, installs handlers. */
void exec_setup(void);
/* A random state in which memory accesses are likely to succeed, and random scratch memory. */
void exec_random(struct exec_state *state, uint64_t *seed);
/* Fills the page around `addr` with int3, then puts `bytes` at it. The page must be one of the three, or come from exec_map(). */
void exec_code(uint64_t addr, const uint8_t *bytes, size_t n);
/*
 * Maps two data pages around `addr`, filled like the scratch memory; at most one mapping at a time. Returns false if the place is
 * taken.
 */
bool exec_map(uint64_t addr, uint64_t *seed);
void exec_unmap(void);
/* The data that the code can access. */
struct exec_memory {
	uint8_t scratch[EXEC_SCRATCH_SIZE];
	uint8_t operand[EXEC_OPERAND];
};
void exec_save(struct exec_memory *memory);
void exec_restore(const struct exec_memory *memory);
bool exec_same(const struct exec_memory *memory);
/* Runs from `state`, rip included; `state` becomes the final state. */
void exec_run(struct exec_state *state);

#endif

/* SPDX-License-Identifier: MIT */
/* The interface of canary.c and canary_hot.S. The assembly uses the offsets: keep them. */
#ifndef DP_TESTS_CANARY_H
#define DP_TESTS_CANARY_H

#include <stddef.h>
#include <stdint.h>

enum canary_level { CANARY_SSE, CANARY_AVX, CANARY_AVX512 };

struct canary_state {
	uint64_t gpr[16]; /* rax rcx rdx rbx (rsp) rbp rsi rdi r8 .. r15 */
	uint64_t rflags;
	uint32_t mxcsr, pad;
	uint8_t x87[112]; /* as fnsave writes it: 7 doublewords of environment, 8 registers of 10 bytes */
	uint64_t red_zone[16];
	uint64_t k[8];
	uint8_t vector[32][64];
};

struct canary {
	struct canary_state in, out;
	uint64_t level; /* enum canary_level */
};

/* Loads every register from in, runs canary_body, stores every register to out. */
void canary_hot(struct canary *c);
extern const uint8_t canary_body[], canary_body_end[];
/* Offsets in canary_body of its instructions. */
extern const uint32_t canary_insn[], canary_insn_end[];

#endif

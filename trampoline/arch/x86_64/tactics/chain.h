/* SPDX-License-Identifier: MIT */
/*
 * A chain of jumps that share bytes. Each starts at its own head and may overlap the following ones: the upper bytes of one
 * jump's rel32 are then the prefixes, opcode and lower bytes of the next. All tactics are chains: one jump with all bytes its own
 * (jump, window), one with the following bytes as its upper ones (pun), two or three of which all but the first replace evicted
 * instructions.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_TACTICS_CHAIN_H
#define DP_TRAMPOLINE_ARCH_X86_64_TACTICS_CHAIN_H

#include "trampoline/arch/x86_64/emit/springboard.h"

#define DP_CHAIN_BYTES 32u
#define DP_CHAIN_HOPS  3u
#define DP_JUMP_MAX    8u /* three prefixes, e9, rel32 */

struct dp_hop {
	uint8_t at;     /* offset of its head */
	uint8_t own;    /* own bytes from there on: prefixes and opcode must be among them */
	uint64_t entry; /* of its stub */
	bool direct;    /* it may jump to the stub without a springboard */
	/* result: */
	uint8_t prefixes;
	uint64_t target;
	uint8_t springboard; /* size; 0: the target is the stub */
};

struct dp_chain {
	struct dp_room *room;
	uint64_t base;
	uint8_t byte[DP_CHAIN_BYTES]; /* current bytes; the solution's afterwards */
	bool fixed[DP_CHAIN_BYTES];   /* must not change; the others belong to some jump */
	bool bad[DP_CHAIN_BYTES];     /* fixed, but must not be relied on */
	uint8_t nhops;                /* ascending by `at` */
	struct dp_hop hop[DP_CHAIN_HOPS];
	uint8_t max_prefixes;
	uint8_t lead; /* not 0: the first byte of the first jump */
};

/* Bytes with which a jump may begin, besides its opcode. */
#define DP_JMP_OPCODE 0xe9
#define DP_NPREFIXES  23u
extern const uint8_t dp_prefixes[DP_NPREFIXES];

/* Offset after the jump. */
uint8_t dp_hop_end(const struct dp_hop *hop);
/* Finds prefixes, targets and bytes. False if there is no solution; the chain is then unchanged. room->ntaken is as before. */
bool dp_chain_solve(struct dp_chain *knot);

#endif

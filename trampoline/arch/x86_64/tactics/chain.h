/* SPDX-License-Identifier: MIT */
/*
 * Jumps that share bytes. Each starts at its own head and may overlap those behind it: the upper bytes of one jump's rel32 are
 * then the prefixes, opcode and lower bytes of the next. All tactics are this: one jump whose bytes are all its own (jump,
 * window), one whose upper bytes are what follows (pun), two or three of which all but the first replace evicted instructions.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_KNOT_H
#define DP_TRAMPOLINE_ARCH_X86_64_KNOT_H

#include "trampoline/arch/x86_64/emit/springboard.h"

#define DP_CHAIN_BYTES 32u
#define DP_CHAIN_HOPS  3u
#define DP_JUMP_MAX    8u /* three prefixes, e9, rel32 */

struct dp_hop {
	uint8_t at;     /* offset of its head */
	uint8_t own;    /* bytes from there that are its own: prefixes and opcode must be among them */
	uint64_t entry; /* of the stub that it leads to */
	bool direct;    /* it may lead there without a springboard */
	/* found: */
	uint8_t prefixes;
	uint64_t target;
	uint8_t springboard; /* size; 0: the target is the stub */
};

struct dp_chain {
	struct dp_room *room;
	uint64_t base;
	uint8_t byte[DP_CHAIN_BYTES]; /* as they are now; the solution's afterwards */
	bool fixed[DP_CHAIN_BYTES];   /* must stay; what is not fixed belongs to some hop */
	bool bad[DP_CHAIN_BYTES];     /* fixed, but not to be relied upon */
	uint8_t nhops;                /* ascending by `at` */
	struct dp_hop hop[DP_CHAIN_HOPS];
	uint8_t max_prefixes;
	uint8_t lead; /* not 0: the first jump has to begin with this byte */
};

/* Bytes that a jump may begin with, besides its opcode. */
#define DP_JMP_OPCODE 0xe9
#define DP_NPREFIXES  23u
extern const uint8_t dp_prefixes[DP_NPREFIXES];

/* Offset behind the hop's jump. */
uint8_t dp_hop_end(const struct dp_hop *hop);
/* Finds prefixes, targets and bytes. False if there is none; the knot is unchanged then. room->ntaken is as before. */
bool dp_chain_solve(struct dp_chain *knot);

#endif

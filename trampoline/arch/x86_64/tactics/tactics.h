/* SPDX-License-Identifier: MIT */
/*
 * Fitting a 5-byte jump (e9 rel32) into code whose instructions are shorter than that.
 *
 * jump    The instruction has 5 bytes or more: the jump replaces its first 5. What is left of it is dead.
 * pun     The instruction has 1 to 4 bytes, and whoever jumps to its successors must find them unchanged. So the upper bytes of
 *         rel32 ARE the successors' bytes, and only the lower ones can be chosen: the jump can lead into a range of addresses,
 *         where a springboard has to be. Redundant prefixes in front of e9 shift the jump and so make other bytes the upper ones:
 *
 *             48 89 c7      mov %rax,%rdi      e9 xx xx|31 c0     or     26 e9 xx|31 c0 89    or     26 26 e9|31 c0 89 d1
 *             31 c0         xor %eax,%eax
 *             89 d1         mov %edx,%ecx
 *
 *         No instruction but the site's own changes, so nothing needs to be known about the program's control flow.
 * evict   A neighbour becomes a jump as well, to where it runs now (planner: evict.c). Its head stays an entry, so again nothing
 * needs to be known, except that it is an instruction. Its other bytes are free choices for the site's jump. window  The jump
 * replaces several instructions, after proof that nothing lands inside (window.c); what they lack in length is shared as in a
 * pun.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_TACTICS_H
#define DP_TRAMPOLINE_ARCH_X86_64_TACTICS_H

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/arch/x86_64/tactics/chain.h"
#include "trampoline/trampoline.h"

#define DP_FIT_INSNS    5 /* as many as a 5-byte jump can touch */
#define DP_MAX_PREFIXES 3

struct dp_fit {
	uint8_t covered; /* bytes */
	uint8_t heads;   /* of instructions and of padding in them */
	uint8_t ninsns;  /* displaced into the stub */
	struct dp_insn insn[DP_FIT_INSNS];
	uint8_t ninterior;
	uint8_t interior[4];
};

/* One jump at `site`, whose first `own` bytes are its own; the others stay as `byte` and `state` (enum dp_byte_state) say. */
void dp_chain_site(struct dp_chain *knot, uint64_t site, const uint8_t *byte, const uint8_t *state, uint8_t own);
/* Adds a hop, behind the others; its bytes become its own. */
void dp_chain_add(struct dp_chain *knot, uint64_t head, uint8_t own, uint64_t entry);
/* May the instruction be moved for another's sake? A system call, a landing pad and whatever looks at its own address may not. */
bool dp_insn_may_move(const struct dp_insn *insn);

#endif

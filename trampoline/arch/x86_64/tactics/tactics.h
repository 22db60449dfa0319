/* SPDX-License-Identifier: MIT */
/*
 * Fitting a 5-byte jump (e9 rel32) into code whose instructions are shorter than that.
 *
 * jump    The instruction has 5 bytes or more: the jump replaces its first 5. The rest of it is dead.
 * pun     The instruction has 1 to 4 bytes, and jumps to its successors must find them unchanged. So the upper bytes of
 *         rel32 ARE the successors' bytes, and only the lower ones can be chosen: the jump can lead into a range of addresses,
 *         which must have room for a springboard. Redundant prefixes before e9 shift the jump, so that other bytes are its
 *         upper ones:
 *
 *             48 89 c7      mov %rax,%rdi      e9 xx xx|31 c0     or     26 e9 xx|31 c0 89    or     26 26 e9|31 c0 89 d1
 *             31 c0         xor %eax,%eax
 *             89 d1         mov %edx,%ecx
 *
 *         Only the site's own instruction changes, so the program's control flow does not matter.
 * evict   A neighbour becomes a jump too, to its copy in a stub (planner: evict.c). Its head stays an entry, so again control
 *         flow does not matter, only that it is an instruction. Its other bytes are free choices for the site's jump.
 * window  The jump replaces several instructions, after proof that nothing jumps inside (window.c); if they are too short
 *         together, the rest is shared as in a pun.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_TACTICS_TACTICS_H
#define DP_TRAMPOLINE_ARCH_X86_64_TACTICS_TACTICS_H

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/arch/x86_64/tactics/chain.h"
#include "trampoline/trampoline.h"

#define DP_FIT_INSNS    5 /* the most that a 5-byte jump can touch */
#define DP_MAX_PREFIXES 3

struct dp_fit {
	uint8_t covered; /* bytes */
	uint8_t heads;   /* of instructions and of padding in them */
	uint8_t ninsns;  /* displaced into the stub */
	struct dp_insn insn[DP_FIT_INSNS];
	uint8_t ninterior;
	uint8_t interior[4];
};

/* One jump at `site` with `own` bytes of its own; for the others `byte` and `state` (enum dp_byte_state) apply. */
void dp_chain_site(struct dp_chain *knot, uint64_t site, const uint8_t *byte, const uint8_t *state, uint8_t own);
/* Adds a jump after the others; its bytes become its own. */
void dp_chain_add(struct dp_chain *knot, uint64_t head, uint8_t own, uint64_t entry);
/* Whether the instruction may be evicted. Not a system call, a landing pad or an instruction that depends on its own address. */
bool dp_insn_may_move(const struct dp_insn *insn);

#endif

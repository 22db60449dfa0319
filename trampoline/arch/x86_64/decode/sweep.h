/* SPDX-License-Identifier: MIT */
/*
 * The instruction starts of a function, found by one linear walk. An evicted neighbour must be an instruction for certain: a
 * function that contains bytes which look like data is not trusted at all. Nor may it be one that is entered in its middle, as in
 * glibc's "cmpl $0, %fs:0x18; je 1f; lock; 1: cmpxchg": the branch would lead into the jump that replaces it.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_DECODE_SWEEP_H
#define DP_TRAMPOLINE_ARCH_X86_64_DECODE_SWEEP_H

#include "trampoline/trampoline.h"

struct dp_sweeps;
struct dp_error *dp_sweeps_create(struct dp_sweeps **ret) DP_MUST_CHECK;
struct dp_sweeps *dp_sweeps_destroy(struct dp_sweeps *sweeps);

struct dp_sweep {
	uint64_t start, size;
	bool good;             /* decodes from its start exactly to its end, and nothing in it looks like data */
	const uint8_t *length; /* of the instruction at each byte; 0: none starts there, or it is entered */
	const uint8_t *entered; /* a byte for each: does a branch lead there, into the middle of an instruction? */
};
/* Does a branch of the function lead behind the start of the instruction? Its bytes must not change then. */
bool dp_sweep_is_entered(const struct dp_sweep *sweep, uint64_t addr, uint8_t len);
/* Only instructions with a lock prefix are known to be entered: code jumps over the prefix while there is one thread. */
static inline bool dp_sweep_may_be_entered(const uint8_t *insn)
{
	return *insn == 0xf0;
}
/* A function of the module. NULL when out of memory, or if its size is not credible. */
const struct dp_sweep *dp_sweeps_get(struct dp_sweeps *sweeps, const struct dp_text *text, const struct dp_range *function);

#endif

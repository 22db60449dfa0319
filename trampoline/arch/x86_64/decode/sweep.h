/* SPDX-License-Identifier: MIT */
/*
 * The instruction starts of a function, found by one linear walk. An evicted neighbour must be an instruction for certain: a
 * function that contains bytes which look like data is not trusted at all.
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
	const uint8_t *length; /* of the instruction at each byte; 0: none starts there */
};
/* A function of the module. NULL when out of memory, or if its size is not credible. */
const struct dp_sweep *dp_sweeps_get(struct dp_sweeps *sweeps, const struct dp_text *text, const struct dp_range *function);

#endif

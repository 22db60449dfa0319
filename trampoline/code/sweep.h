/* SPDX-License-Identifier: MIT */
/*
 * Where the instructions of a function start, found by walking through it once. Neighbours of a site that would give way have to
 * be instructions for certain: a function whose bytes look like data anywhere is not trusted at all.
 */
#ifndef DP_TRAMPOLINE_SWEEP_H
#define DP_TRAMPOLINE_SWEEP_H

#include "trampoline/trampoline.h"

struct dp_sweeps;
struct dp_error *dp_sweeps_create(struct dp_sweeps **ret) DP_MUST_CHECK;
struct dp_sweeps *dp_sweeps_destroy(struct dp_sweeps *sweeps);

struct dp_sweep {
	uint64_t start, size;
	bool good;             /* decodes from its start exactly to its end, and nothing in it looks like data */
	const uint8_t *length; /* of the instruction that starts at each byte; 0: none does */
};
/* A function of the module. NULL when out of memory, or if it is not to be believed. */
const struct dp_sweep *dp_sweeps_get(struct dp_sweeps *sweeps, const struct dp_text *text, const struct dp_range *function);

#endif

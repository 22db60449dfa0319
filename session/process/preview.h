/* SPDX-License-Identifier: MIT */
/* --dry-run: a copy of what the planner knows of a session's plans, which outlives the planner. */
#ifndef DP_SESSION_PROCESS_PREVIEW_H
#define DP_SESSION_PROCESS_PREVIEW_H

#include "session/process/session.h"

struct dp_neighbour { /* a plan without a probe: an evicted instruction, or one of our hooks */
	const struct dp_plan *plan;
	bool evicted; /* it was evicted for a probe of the user */
};

struct dp_preview {
	struct dp_plan *plan; /* in the order of dp_planner_plans() */
	size_t nplans;
	struct dp_neighbour *neighbour; /* sorted by site */
	size_t nneighbours;
	size_t extents;        /* mappings for stubs and springboards */
	uint64_t extent_bytes; /* their size, in whole pages */
	struct dp_footprint own;
};

/* Fills s->preview, and copies the final plans to the places. */
struct dp_error *dp_preview_make(struct dp_session *s, struct dp_planner *planner) DP_MUST_CHECK;
/*
 * The next instruction, from *i on, that was evicted for the plan: the plan's jump relies on its new bytes, or jumps into its
 * room. NULL: no more. *i starts at 0.
 */
const struct dp_plan *dp_preview_evicted(struct dp_preview *preview, const struct dp_plan *plan, size_t *i);
struct dp_preview *dp_preview_destroy(struct dp_preview *preview);

#endif

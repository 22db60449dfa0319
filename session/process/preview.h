/* SPDX-License-Identifier: MIT */
/* --dry-run: what the planner knows of a session's plans, kept when the planner is gone. */
#ifndef DP_SESSION_PREVIEW_H
#define DP_SESSION_PREVIEW_H

#include "session/process/session.h"

struct dp_neighbour { /* a plan that is nobody's probe: an evicted instruction, or a hook of our own */
	const struct dp_plan *plan;
	bool evicted; /* it gave way for a probe that was asked about */
};

struct dp_preview {
	struct dp_plan *plan; /* all of them, in the order of dp_planner_plans() */
	size_t nplans;
	struct dp_neighbour *neighbour; /* ascending sites */
	size_t nneighbours;
	size_t extents;        /* mappings for stubs and springboards */
	uint64_t extent_bytes; /* in them, whole pages */
	struct dp_footprint own;
};

/* Copies what is needed into s->preview, and the plans as they stand now into the places. */
struct dp_error *dp_preview_take(struct dp_session *s, struct dp_planner *planner) DP_MUST_CHECK;
/*
 * The next instruction, from *i on, that gave way for the plan: whose new bytes its jump relies upon, or whose room it jumps
 * into. NULL: no more. *i starts at 0.
 */
const struct dp_plan *dp_preview_evicted(struct dp_preview *preview, const struct dp_plan *plan, size_t *i);
struct dp_preview *dp_preview_destroy(struct dp_preview *preview);

#endif

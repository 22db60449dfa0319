/* SPDX-License-Identifier: MIT */
/* --dry-run: what the planner knows of a session's plans, kept when the planner is gone. */
#ifndef DP_CLI_PREVIEW_H
#define DP_CLI_PREVIEW_H

#include "cli/session.h"

struct dp_preview {
	struct dp_plan *plan; /* all of them, in the order of dp_planner_plans() */
	size_t nplans;
	size_t extents;        /* mappings for stubs and springboards */
	uint64_t extent_bytes; /* in them, whole pages */
	struct dp_footprint own;
};

/* Copies what is needed into s->preview, and the plans as they stand now into the places. */
struct dp_error *dp_preview_take(struct dp_session *s, struct dp_planner *planner) DP_MUST_CHECK;
struct dp_preview *dp_preview_destroy(struct dp_preview *preview);

#endif

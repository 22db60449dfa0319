/* SPDX-License-Identifier: MIT */
/*
 * Prefetch: reads what showing values would read, and builds nothing. It learns which pages are needed, and resolves the types,
 * names and symbols. The target of several pointers is visited once. May reach more than is shown; rarely less.
 */
#ifndef DP_PMODULES_VALUE_VALUE_REACH_H
#define DP_PMODULES_VALUE_VALUE_REACH_H

#include "pmodules/value/debug_ctx_internal.h"

struct dp_reach_seen { /* a visited object; addr 0: free slot */
	uint64_t addr;
	const struct dp_ctype *type;
	unsigned depth; /* pointers followed from it */
};
struct dp_reach_later;
struct dp_reach {
	struct dp_debug_ctx *w;
	struct dp_limits limits; /* defaults filled in */
	uint64_t budget;         /* parts of the current frame that may still be visited */
	uint64_t left;           /* the same for all frames: as many as fit into a snapshot */
	uint64_t page;           /* last one touched */
	struct dp_reach_seen *seen;
	size_t nseen, room; /* room: a power of two, or 0 */
	struct dp_reach_later *later;
	size_t nlater, capacity, next;
};
void dp_reach_init(struct dp_reach *r, struct dp_debug_ctx *w, const struct dp_limits *limits);
void dp_reach_fini(struct dp_reach *r);
/* Counterparts of dp_show() and dp_show_finish(). */
void dp_reach(struct dp_reach *r, struct dp_value *v, unsigned depth);
void dp_reach_finish(struct dp_reach *r);

#endif

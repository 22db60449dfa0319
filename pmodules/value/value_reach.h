/* SPDX-License-Identifier: MIT */
/*
 * What showing values would read, without making anything of it: a rehearsal learns which pages will be needed, and has the
 * types, names and symbols worked out that will be asked for. What several pointers lead to is looked at once. More may be
 * reached than will be shown, hardly ever less.
 */
#ifndef DP_PMODULES_VALUE_REACH_H
#define DP_PMODULES_VALUE_REACH_H

#include "pmodules/value/world_internal.h"

struct dp_reach_seen { /* an object that has been looked at; addr 0: free */
	uint64_t addr;
	const struct dp_stype *type;
	unsigned depth; /* pointers that were followed from it */
};
struct dp_reach_later;
struct dp_reach {
	struct dp_world *w;
	struct dp_limits limits; /* without zeroes */
	uint64_t budget;         /* parts of one frame that may still be looked at */
	uint64_t left;           /* of all frames: as many as a snapshot has room for */
	uint64_t page;           /* touched last */
	struct dp_reach_seen *seen;
	size_t nseen, room; /* room: a power of two, or 0 */
	struct dp_reach_later *later;
	size_t nlater, capacity, next;
};
void dp_reach_init(struct dp_reach *r, struct dp_world *w, const struct dp_limits *limits);
void dp_reach_fini(struct dp_reach *r);
/* As dp_show() and dp_show_finish(). */
void dp_reach(struct dp_reach *r, struct dp_value *v, unsigned depth);
void dp_reach_finish(struct dp_reach *r);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Process and thread ids in other pid namespaces. Rings have the ids that the program itself sees (in a container: 1); the user
 * of dynprobe sees others, which only /proc tells, as long as the thread lives.
 */
#ifndef DP_INJECTOR_TARGET_EVENTS_OUTER_H
#define DP_INJECTOR_TARGET_EVENTS_OUTER_H

#include "injector/target/target.h"

struct dp_outer { /* passes hits on with the ids that dynprobe's user sees; the ids from the ring become the inner ones */
	struct dp_target *t;
	dp_hit_fn each;  /* for dp_outer_hit() */
	dp_hits_fn lane; /* for dp_outer_hits() */
	void *data;
};
/* Can ids differ? If not, hits need no translation. */
bool dp_outer_differs(const struct dp_target *t);
/* A dp_hit_fn; `data` is a struct dp_outer. The ids of a thread that ended before it was asked for stay as they are. */
void dp_outer_hit(const struct dp_hit *hit, void *data);
/* The same for a dp_hits_fn. */
void dp_outer_hits(const struct dp_hits *hits, void *data);
void dp_outer_fini(struct dp_target *t);

#endif

/* SPDX-License-Identifier: MIT */
/* Hits of one ring, in batches. */
#ifndef DP_INJECTOR_RING_DRAIN_BATCH_H
#define DP_INJECTOR_RING_DRAIN_BATCH_H

#include "injector/ring/clock.h"
#include "injector/ring/drain_lane.h"
#include "injector/ring/hits.h"

#define DP_BATCH_MOST 256u

struct dp_batch {
	struct dp_hits hits;
	struct dp_hits_item item[DP_BATCH_MOST];
	const struct dp_clock *clock;
	struct dp_clock_line line;
	uint64_t latest; /* counts up to this one are not in the future */
	dp_hits_fn each;
	void *data;
};

/* Passes on what is in the ring up to lane->head, until *broken. pass->batch is set. */
void dp_lane_batches(struct dp_lane *lane, const struct dp_collect *pass, const bool *broken);
/* Adds a hit, for which there is room. */
void dp_batch_add(struct dp_batch *b, struct dp_lane *lane, uint64_t tsc, const struct dp_hits_item *item);

#endif

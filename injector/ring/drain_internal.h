/* SPDX-License-Identifier: MIT */
/* What the parts of the consumer share: drain.c reads the rings, drain_reap.c frees those of threads that have ended. */
#ifndef DP_INJECTOR_RING_DRAIN_INTERNAL_H
#define DP_INJECTOR_RING_DRAIN_INTERNAL_H

#include "injector/ring/drain.h"
#include "injector/ring/drain_lane.h"
#include "injector/ring/waiters.h"

struct dp_drain {
	struct dp_control *control;
	struct dp_lost *lost; /* in the shared region */
	struct dp_clock *clock;
	uint64_t newest; /* of a dump: no record is newer than this count; else 0 */
	struct dp_lane *lane;
	uint32_t *active; /* indices of the lanes of this pass */
	uint32_t *heap;   /* indices of the lanes that have hits below the horizon; the oldest first */
	uint32_t nlanes, nused, nactive, nheap, nprobes;
	uint64_t number; /* no other drain of this tool has it */
	uint64_t passes, previous;
	uint64_t last_ns;
	uint64_t damaged, abandoned;
	bool broken; /* the consumer wants no more for now */
	struct dp_ring_memory room;
	struct dp_waiters waiters;
	dp_owner_fn owner_state; /* NULL: only the target records */
};

#endif

/* SPDX-License-Identifier: MIT */
/* One slot as the consumer sees it: what it has consumed of its ring, and the records it copied out but has not yet passed on. */
#ifndef DP_INJECTOR_DRAIN_LANE_H
#define DP_INJECTOR_DRAIN_LANE_H

#include "agent/abi.h"
#include "base/error.h"

#include <sys/types.h>

/* Counts may differ between processors by this much; nobody is so far ahead without being wrong. */
#define DP_TICKS_SKEW  (UINT64_C(1) << 14)
#define DP_TICKS_WRONG (UINT64_C(1) << 22)

struct dp_item {      /* a record copied out */
	uint64_t key; /* its time, not below that of the item before it in the same lane */
	uint64_t tsc;
	pid_t tid;
	uint16_t probe;
	uint16_t len;
	uint8_t payload[];
};

struct dp_lane {
	struct dp_slot *slot;
	uint64_t tail; /* consumed up to here: the truth; slot->tail is a copy for the agent */
	uint64_t head; /* slot->head at the start of this pass */
	uint8_t *ring;
	uint64_t mask;
	uint64_t last_key;
	uint64_t floor;         /* pending: the hit at tail will not get a time below this */
	uint64_t pending_since; /* pending: when that was first seen */
	uint64_t gone;          /* slot word of a thread known to be gone, or 0 */
	uint64_t filler; /* of the records that this pass took: the one at the lap's end, or UINT64_MAX */
	uint64_t peak;   /* most bytes that were unread at once since drain_room.c's last look */
	uint64_t moved;  /* the head as of that look */
	uint32_t calm;   /* for so many looks it has been the same */
	uint64_t owed;   /* bytes of the pool that its pages take besides the room */
	uint32_t given;  /* how often room was given back: what limit is set to then is a value that it never had */
	pid_t tid;
	bool pending; /* the hit at tail is reserved and not yet committed */
	bool final;   /* nobody writes to the ring: what is not committed is abandoned */
	bool cut;     /* the queue is full: there is more in the ring */
	uint8_t *queue;
	size_t start, end, size; /* of the queue */
};

struct dp_collect {        /* of one pass */
	uint64_t begin;    /* tsc */
	uint64_t previous; /* begin of the pass before */
	size_t quota;      /* bytes of a lane's queue */
	unsigned nprobes;
	uint64_t *damaged, *abandoned; /* counters */
};

struct dp_room { /* what rings grow by (drain_room.c) */
	struct dp_control *control;
	uint64_t first_most;
	uint64_t starved; /* as of the last look */
	bool returned;    /* it is given back here: the ring is mapped, not a copy */
};

/* Gives back what rings have that nobody needs. To be called about once a second. */
void dp_room_look(struct dp_room *room, struct dp_lane *lane, uint32_t n);
/* All of it, of a ring that is empty, and whose thread is gone: nobody can claim the slot meanwhile. */
void dp_room_clear(struct dp_room *room, struct dp_lane *lane);

/* Looks at slot->head. True if there is something to collect, or still queued. */
bool dp_lane_look(struct dp_lane *lane, const struct dp_collect *pass);
/* Copies records from the ring to the queue, up to lane->head or the quota, and gives their place back to the agent. */
struct dp_error *dp_lane_collect(struct dp_lane *lane, const struct dp_collect *pass) DP_MUST_CHECK;
/* The oldest queued item, or NULL. */
const struct dp_item *dp_lane_first(const struct dp_lane *lane);
void dp_lane_pop(struct dp_lane *lane);

/* What its slot says of its room, as far as that can be. */
uint64_t dp_lane_room(const struct dp_lane *lane);

static inline uint64_t dp_lane_word(const struct dp_lane *lane)
{
	return __atomic_load_n((const uint64_t *)(const void *)&lane->slot->tid, __ATOMIC_ACQUIRE);
}

#endif

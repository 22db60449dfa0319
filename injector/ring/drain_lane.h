/* SPDX-License-Identifier: MIT */
/* One slot as the consumer sees it: how far its ring is consumed, and the records copied out but not yet passed on. */
#ifndef DP_INJECTOR_RING_DRAIN_LANE_H
#define DP_INJECTOR_RING_DRAIN_LANE_H

#include "agent/abi.h"
#include "base/error.h"

#include <sys/types.h>

/* Counts may differ by SKEW between processors; a count ahead by WRONG is damage. */
#define DP_TICKS_SKEW  (UINT64_C(1) << 14)
#define DP_TICKS_WRONG (UINT64_C(1) << 22)

struct dp_queued_record {      /* a record copied out */
	uint64_t key; /* its time, at least that of the item before it in the same lane */
	uint64_t tsc;
	pid_t pid; /* 0: the target */
	pid_t tid;
	uint16_t probe;
	uint16_t len;
	uint8_t payload[];
};

struct dp_lane {
	struct dp_slot *slot;
	uint64_t tail; /* consumed up to here; authoritative: slot->tail is a copy for the agent */
	uint64_t head; /* slot->head at the start of this pass */
	uint8_t *ring;
	uint64_t mask;
	uint64_t last_key;
	uint64_t floor;         /* pending: lower bound for the time of the hit at tail */
	uint64_t pending_since; /* pending: when that was first seen */
	uint64_t gone;          /* slot word of a thread known to be gone, or 0 */
	uint64_t filler; /* position of the filler at the lap's end that this pass took, or UINT64_MAX */
	uint64_t peak;   /* most unread bytes at once since the last dp_room_inspect() */
	uint64_t moved;  /* the head at that look */
	uint32_t calm;   /* looks since it changed */
	uint64_t owed;   /* bytes of the pool that its pages use beyond the room */
	uint32_t given;  /* times room was given back: makes a limit that it never had */
	pid_t pid, tid; /* pid 0: the target */
	bool pending; /* the hit at tail is reserved and not yet committed */
	bool final;   /* no thread writes to the ring: uncommitted records are abandoned */
	bool cut;     /* the queue is full and the ring has more */
	uint8_t *queue;
	size_t start, end, size; /* in the queue */
};

struct dp_batch;           /* drain_batch.h */
struct dp_collect {        /* state of one pass */
	uint64_t begin;    /* tsc */
	uint64_t previous; /* begin of the pass before */
	size_t quota;      /* limit of a lane's queue, bytes */
	struct dp_batch *batch; /* where hits go; NULL: to the lane's queue */
	unsigned nprobes;
	uint64_t *damaged, *abandoned; /* counters */
};

struct dp_ring_memory { /* the memory that rings grow by (drain_room.c) */
	struct dp_control *control;
	uint64_t first_most;
	uint64_t starved; /* at the last look */
	bool returned;    /* memory is given back here: the ring is mapped, not a copy */
};

/* Gives back memory that rings do not need. Call it about once a second. */
void dp_room_inspect(struct dp_ring_memory *room, struct dp_lane *lane, uint32_t n);
/* Gives back all memory of an empty ring whose thread is gone; no thread can claim the slot meanwhile. */
void dp_room_clear(struct dp_ring_memory *room, struct dp_lane *lane);

/* Reads slot->head. True if there is something to collect, or still queued. */
bool dp_lane_inspect(struct dp_lane *lane, const struct dp_collect *pass);
/* Copies records from the ring to the queue, up to lane->head or the quota, and frees their space for the agent. */
struct dp_error *dp_lane_collect(struct dp_lane *lane, const struct dp_collect *pass) DP_MUST_CHECK;

enum dp_lane_step {
	DP_STEP_ON,
	DP_STEP_END,   /* nothing there: the reservation was trimmed away */
	DP_STEP_STUCK, /* reserved, not yet committed */
	DP_STEP_CUT,   /* the queue is full */
	DP_STEP_NOMEM,
};
/* Takes the record at *pos, whatever it is, and moves *pos past it. */
enum dp_lane_step dp_lane_step(struct dp_lane *lane, uint64_t *pos, const struct dp_collect *pass);
/* Zeroes the bytes up to `pos`, then frees them for the agent. */
void dp_lane_consume(struct dp_lane *lane, uint64_t pos);
/* At the end of a pass: is the hit at the tail reserved, and not committed? */
void dp_lane_note_pending(struct dp_lane *lane, bool pending, const struct dp_collect *pass);

/* The oldest queued item, or NULL. */
static inline const struct dp_queued_record *dp_lane_first(const struct dp_lane *lane)
{
	return lane->start < lane->end ? (const struct dp_queued_record *)(const void *)(lane->queue + lane->start) : NULL;
}

static inline void dp_lane_pop(struct dp_lane *lane)
{
	lane->start += sizeof(struct dp_queued_record) + dp_lane_first(lane)->len;
	if (lane->start >= lane->end)
		lane->start = lane->end = 0;
}

/* The thread of the next records, a dp_thread_word(); false if it is none. */
bool dp_lane_thread(struct dp_lane *lane, uint64_t thread);

/* The slot's room, at most the ring's size. */
uint64_t dp_lane_room(const struct dp_lane *lane);

static inline uint64_t dp_lane_word(const struct dp_lane *lane)
{
	return __atomic_load_n((const uint64_t *)(const void *)&lane->slot->tid, __ATOMIC_ACQUIRE);
}

#endif

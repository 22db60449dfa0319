/* SPDX-License-Identifier: MIT */
/*
 * Returns rings' memory to the pool and to the system: that of threads that have ended, that of threads without hits for a while,
 * and, if memory is short, that of rings larger than recently needed. agent/abi.h explains how this works while the thread may
 * hit at any moment; decision 0030 explains why nothing written is lost.
 */
#include "injector/ring/drain_lane.h"

#include <sys/mman.h>

#define PAGE       UINT64_C(4096)
#define CALM_LOOKS 5u /* looks for which a thread with spare memory is left alone */

static uint64_t ring_size(const struct dp_lane *lane)
{
	return lane->mask + 1;
}

static uint64_t page_down(uint64_t v)
{
	return v & ~(PAGE - 1);
}

static void punch(const struct dp_lane *lane, uint64_t from, uint64_t to)
{
	if (from < to)
		madvise(lane->ring + from, to - from, MADV_REMOVE);
}

static void give(struct dp_ring_memory *r, uint64_t first, uint64_t more)
{
	__atomic_fetch_add(&r->control->pool_first, first, __ATOMIC_RELAXED);
	__atomic_fetch_add(&r->control->pool, more, __ATOMIC_RELAXED);
}

/* Returns the old room. The thread may have just taken more; it takes no more until DP_ROOM_HELD is cleared. */
static uint64_t hold_room(struct dp_lane *lane, uint64_t left)
{
	const uint64_t room = dp_room_bytes(__atomic_exchange_n(&lane->slot->room, left | DP_ROOM_HELD, __ATOMIC_SEQ_CST));

	return room > ring_size(lane) ? ring_size(lane) : room < left ? left : room;
}

static void set_room(struct dp_lane *lane, uint64_t room)
{
	__atomic_store_n(&lane->slot->room, room, __ATOMIC_SEQ_CST);
}

/* Sets a limit that the slot never had (real ones are multiples of 8), and that is already past: it allows no writing. */
static void shut(struct dp_lane *lane)
{
	__atomic_store_n(&lane->slot->limit, 2 * (uint64_t)++lane->given - 1, __ATOMIC_SEQ_CST);
}

/*
 * Gives back an empty ring's memory after the first step, except around the thread's position: a hit in progress may write one
 * record there, and the filler after it.
 */
static void punch_but_here(struct dp_ring_memory *r, struct dp_lane *lane, uint64_t room)
{
	const uint64_t at = lane->tail & lane->mask, end = page_down(at + DP_RECORD_MAX + DP_PAD_LEAST + PAGE - 1);
	const uint64_t from = page_down(at) > DP_ROOM_STEP ? page_down(at) : DP_ROOM_STEP, to = end > from ? end : from;
	const uint64_t owed = lane->owed;

	punch(lane, DP_ROOM_STEP, from);
	punch(lane, to, ring_size(lane));
	lane->owed = to - from;
	give(r, 0, room - DP_ROOM_STEP + owed - lane->owed);
}

/* Shrinks an empty ring to its initial room. Hits meanwhile have that much; what does not fit counts as lost. */
static void shrink(struct dp_ring_memory *r, struct dp_lane *lane)
{
	const uint64_t room = hold_room(lane, DP_ROOM_STEP);

	shut(lane);
	const bool empty = __atomic_load_n(&lane->slot->head, __ATOMIC_SEQ_CST) == lane->tail;
	if (empty)
		punch_but_here(r, lane, room);
	set_room(lane, empty ? DP_ROOM_STEP : room);
}

void dp_room_clear(struct dp_ring_memory *r, struct dp_lane *lane)
{
	struct dp_slot *slot = lane->slot;
	const uint64_t fresh = (lane->tail + lane->mask) & ~lane->mask;

	if (!r->returned || !dp_lane_room(lane))
		return;
	const uint64_t room = hold_room(lane, 0);
	const uint64_t first = room >= DP_ROOM_STEP && r->control->pool_first < r->first_most ? DP_ROOM_STEP : 0;
	shut(lane);
	lane->tail = lane->head = fresh;
	__atomic_store_n(&slot->tail, fresh, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->head, fresh, __ATOMIC_RELEASE);
	punch(lane, 0, ring_size(lane));
	give(r, first, room - first + lane->owed);
	lane->owed = 0;
	set_room(lane, 0);
}

static bool is_short(struct dp_ring_memory *r)
{
	const uint64_t starved = __atomic_load_n(&r->control->starved, __ATOMIC_RELAXED), before = r->starved;

	r->starved = starved;
	return starved != before || __atomic_load_n(&r->control->pool, __ATOMIC_RELAXED) < r->control->pool_most / 8;
}

void dp_room_inspect(struct dp_ring_memory *r, struct dp_lane *lanes, uint32_t n)
{
	const bool scarce = r->returned && is_short(r);

	for (uint32_t i = 0; r->returned && i < n; i++) {
		struct dp_lane *lane = &lanes[i];
		const uint64_t head = __atomic_load_n(&lane->slot->head, __ATOMIC_ACQUIRE), room = dp_lane_room(lane);
		const bool spare = scarce && room > 4 * lane->peak;

		lane->calm = head == lane->moved ? lane->calm + 1 : 0;
		lane->moved = head;
		lane->peak = 0;
		if (head == lane->tail && room > DP_ROOM_STEP && !lane->gone && (spare || lane->calm >= CALM_LOOKS))
			shrink(r, lane);
	}
}

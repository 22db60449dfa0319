/* SPDX-License-Identifier: MIT */
/*
 * Reserves room in a ring, for one producer that interrupts itself.
 *
 * Every step may be interrupted by a signal handler that runs whole hits in the same ring. That is harmless: head is changed by
 * cmpxchg only, and never returns to a former value; nor do limit and room. A change noticed too late only costs another
 * iteration.
 */
#include "agent/agent.h"

static struct dp_record *record_at(const struct dp_slot *slot, uint64_t pos)
{
	return (struct dp_record *)(uintptr_t)(slot->base + (pos & slot->mask));
}

void dp_ring_commit(struct dp_record *record, uint32_t size, uint16_t probe)
{
	DP_STORE((uint64_t *)(void *)record, (uint64_t)probe << 32 | size);
}

/* ---- room -------------------------------------------------------------------------------------- */

static bool take(uint64_t *pool, uint64_t n)
{
	for (uint64_t left = DP_LOAD(pool); left >= n; left = DP_LOAD(pool)) {
		if (dp_cmpxchg(pool, left, left - n))
			return true;
	}
	return false;
}

static bool take_any(struct dp_control *control, uint64_t room, uint64_t want)
{
	if (!room && want <= DP_ROOM_STEP && take(&control->pool_first, want))
		return true;
	return take(&control->pool, want - room);
}

/* Makes the room at least `need` bytes, unless another thread or the tool changed it meanwhile. False: no memory for that now. */
static bool grow(struct dp_control *control, struct dp_slot *slot, uint64_t room, uint64_t need)
{
	if (room & DP_ROOM_HELD)
		return false;
	uint64_t ring = slot->mask + 1, want = room ? 2 * room : DP_ROOM_STEP, least = room + DP_ROOM_STEP;

	while (want < need)
		want *= 2;
	if (want > ring)
		want = ring;
	if (!take_any(control, room, want)) {
		if (least < need || least >= want || !take(&control->pool, DP_ROOM_STEP)) {
			__atomic_fetch_add(&control->starved, 1, __ATOMIC_RELAXED);
			return false;
		}
		want = least;
	}
	if (!dp_cmpxchg(&slot->room, room, want))
		__atomic_fetch_add(&control->pool, want - room, __ATOMIC_RELAXED);
	return true;
}

/* At the end of the room: whether more room is better than starting again at the beginning, which is free up to the tail. */
static bool wants_more(const struct dp_control *control, uint64_t room, uint64_t unread)
{
	if (room < DP_ROOM_GOOD && DP_LOAD(&control->pool) > control->pool_most / 8)
		return true;
	return unread >= room / 2;
}

/* Fills the rest of this lap. */
static void next_lap(struct dp_slot *slot, uint64_t pos, uint64_t next)
{
	if (dp_cmpxchg_local(&slot->head, pos, next))
		dp_ring_commit(record_at(slot, pos), (uint32_t)(next - pos), DP_RECORD_PAD);
}

/* limit does not allow `size` bytes at pos. Makes it allow them, or starts the next lap. False: full. */
static bool extend(struct dp_control *control, struct dp_slot *slot, uint64_t pos, uint32_t size)
{
	uint64_t limit = DP_LOAD(&slot->limit), seen = DP_LOAD(&slot->room), tail = DP_LOAD(&slot->tail);
	uint64_t ring = slot->mask + 1, at = pos & slot->mask, next = pos - at + ring, free_end = tail + ring;
	uint64_t room = dp_room_bytes(seen), usable = dp_room_usable(room, ring);

	if (at + size <= usable) {
		uint64_t end = pos - at + usable;

		if (pos + size > free_end)
			return false;
		dp_cmpxchg(&slot->limit, limit, end < free_end ? end : free_end);
		return true;
	}
	bool fits = next + size <= free_end, here = at < room || !at;
	if (here && room < ring && at + size + DP_PAD_LEAST <= ring && (!at || !fits || wants_more(control, room, pos - tail)) &&
	    grow(control, slot, seen, at + size + DP_PAD_LEAST))
		return true;
	if (!at || !fits)
		return false;
	next_lap(slot, pos, next);
	return true;
}

struct dp_record *dp_ring_reserve(const struct dp_agent *agent, struct dp_slot *slot, uint32_t size)
{
	for (;;) {
		struct dp_control *control = dp_agent_control(agent);
		uint64_t pos = DP_LOAD(&slot->head);

		if (!control)
			return NULL;
		if (pos + size > DP_LOAD(&slot->limit)) {
			if (extend(control, slot, pos, size))
				continue;
			/* Asked here, too: that needs no stack. */
			if (DP_LOAD(&control->overwrite) != 1 || !dp_ring_overwrite(agent, slot, size))
				return NULL;
		} else if (dp_cmpxchg_local(&slot->head, pos, pos + size)) {
			return record_at(slot, pos);
		}
	}
}

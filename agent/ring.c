/* SPDX-License-Identifier: MIT */
/*
 * Room in a ring, for one producer that interrupts itself.
 *
 * Every step may be interrupted by a signal handler that runs whole hits of its own in the same ring. That is harmless: head
 * is moved by cmpxchg only, and never comes back to a value it had; limit may be overwritten with an older, lower value,
 * which costs another round and nothing else.
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

/*
 * limit does not allow `size` bytes at pos. Makes it allow them, or leaves the rest of this lap to a filler. False: full.
 */
static bool extend(struct dp_slot *slot, uint64_t pos, uint32_t size)
{
	uint64_t lap_end = (pos | slot->mask) + 1;
	uint64_t free_end = DP_LOAD(&slot->tail) + slot->mask + 1;

	if (pos + size <= lap_end) {
		if (pos + size > free_end)
			return false;
		DP_STORE(&slot->limit, lap_end < free_end ? lap_end : free_end);
		return true;
	}
	if (lap_end + size > free_end)
		return false;
	if (dp_cmpxchg_local(&slot->head, pos, lap_end))
		dp_ring_commit(record_at(slot, pos), (uint32_t)(lap_end - pos), DP_RECORD_PAD);
	return true;
}

struct dp_record *dp_ring_reserve(const struct dp_agent *agent, struct dp_slot *slot, uint32_t size)
{
	for (;;) {
		uint64_t pos = DP_LOAD(&slot->head);

		if (pos + size > DP_LOAD(&slot->limit)) {
			if (!extend(slot, pos, size) && !dp_ring_overwrite(agent, slot, size))
				return NULL;
		} else if (dp_cmpxchg_local(&slot->head, pos, pos + size)) {
			return record_at(slot, pos);
		}
	}
}

/* SPDX-License-Identifier: MIT */
/* The end of a hit. */
#include "agent/agent.h"

/*
 * Returns the unused end of the reservation to the ring, unless a signal handler's record already follows. Those bytes are still
 * zero, as the ring requires: helpers leave nothing non-zero beyond the cursor.
 */
static uint32_t trim(struct dp_slot *slot, const struct dp_record *record, uint32_t used, uint32_t reserved)
{
	uint64_t head = DP_LOAD(&slot->head);
	uint64_t end = (uint64_t)(uintptr_t)record - slot->base + reserved;

	/* Equal offsets mean equal positions: head cannot be a whole lap ahead of a record that is not yet committed. */
	if (((head ^ end) & slot->mask) != 0)
		return reserved;
	return dp_cmpxchg_local(&slot->head, head, head - (reserved - used)) ? used : reserved;
}

void dp_agent_finish(struct dp_capture *capture)
{
	struct dp_record *record = capture->record;
	uint32_t size = (uint32_t)(capture->cursor - (uint8_t *)record + 7) & ~7u;
	uint32_t reserved = capture->desc->reserve;

	if (size < reserved)
		size = trim(capture->slot, record, size, reserved);
	dp_ring_commit(record, size, capture->desc->probe);
}

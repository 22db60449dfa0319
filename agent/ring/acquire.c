/* SPDX-License-Identifier: MIT */
/* The slow path of a hit: what the stub's few instructions cannot handle. */
#include "agent/agent.h"

static struct dp_reservation lose(uint64_t *cause)
{
	__atomic_fetch_add(cause, 1, __ATOMIC_RELAXED);
	return (struct dp_reservation){NULL, NULL};
}

struct dp_reservation dp_acquire(const struct dp_probe_desc *desc)
{
	struct dp_agent *agent = (struct dp_agent *)(uintptr_t)desc->agent;
	struct dp_lost *lost = (struct dp_lost *)(uintptr_t)desc->lost;
	struct dp_thread self;
	struct dp_slot *slot;
	struct dp_record *record;

	if (!dp_thread_begin(agent, desc, &self))
		return lose(&lost->forked);
	dp_thread_name(&self);
	slot = dp_thread_slot(agent, &self);
	if (!slot)
		return lose(&lost->no_slot);
	if (!dp_thread_announce(agent, slot, &self))
		return lose(&lost->full);
	record = dp_ring_reserve(agent, slot, desc->reserve);
	if (!record)
		return lose(&lost->full);
	return (struct dp_reservation){record, slot};
}

/* SPDX-License-Identifier: MIT */
/* The slow path of a hit: what the stub's few instructions cannot handle. */
#include "agent/agent.h"

static struct dp_reservation lose(uint64_t *cause)
{
	__atomic_fetch_add(cause, 1, __ATOMIC_RELAXED);
	return (struct dp_reservation){NULL, NULL};
}

/* *full: the slot whose ring has no room; nothing is counted then. */
static inline __attribute__((always_inline)) struct dp_reservation try(const struct dp_probe_desc *desc, struct dp_slot **full)
{
	struct dp_agent *agent = (struct dp_agent *)(uintptr_t)desc->agent;
	struct dp_lost *lost = (struct dp_lost *)(uintptr_t)desc->lost;
	struct dp_thread self;
	struct dp_slot *slot;
	struct dp_record *record = NULL;

	*full = NULL;
	if (!dp_thread_begin(agent, desc, &self))
		return lose(&lost->forked);
	dp_thread_name(&self);
	slot = dp_thread_slot(agent, &self);
	if (!slot)
		return lose(&lost->no_slot);
	if (dp_thread_announce(agent, slot, &self))
		record = dp_ring_reserve(agent, slot, desc->reserve);
	if (!record)
		*full = slot;
	return (struct dp_reservation){record, slot};
}

/* In a fork child that has come out of its parent's wait, the next try tells. */
static bool may_wait(const struct dp_on_full *f, const struct dp_agent *agent)
{
	return DP_LOAD(&f->wait_ticks) && (DP_LOAD(&agent->live) != DP_JOINED || DP_LOAD(&f->children));
}

/* Out of line, so that hits that do not wait use no stack for it. */
static __attribute__((noinline)) struct dp_reservation acquire_later(const struct dp_probe_desc *desc, struct dp_slot *full)
{
	const struct dp_agent *agent = (const struct dp_agent *)(uintptr_t)desc->agent;
	struct dp_on_full *f = &((struct dp_control *)(uintptr_t)dp_desc_control(desc))->on_full;
	struct dp_patience patience = {.seen = DP_LOAD(&f->drained)};
	struct dp_reservation got = may_wait(f, agent) ? try(desc, &full) : (struct dp_reservation){NULL, NULL};

	while (full && may_wait(f, agent) && dp_full_wait(f, agent, full, &patience)) {
		patience.seen = DP_LOAD(&f->drained);
		got = try(desc, &full);
	}
	if (patience.begun)
		dp_full_note(f, &patience);
	return full ? lose(&((struct dp_lost *)(uintptr_t)desc->lost)->full) : got;
}

struct dp_reservation dp_acquire(const struct dp_probe_desc *desc)
{
	struct dp_slot *full;
	struct dp_reservation got = try(desc, &full);

	return full ? acquire_later(desc, full) : got;
}

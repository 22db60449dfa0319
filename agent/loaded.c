/* SPDX-License-Identifier: MIT */
/*
 * A thread that loads or unloads a library comes by here, with the loader's lock held: every thread that wants to load, to look
 * up a symbol late, or to end may wait for it. So the wait has an end that needs nobody: not the tool, which may be dead, stopped
 * or slow. Who was not answered in time says so, and from then on nobody waits until a tool says that it answers again.
 *
 * The program's signal handlers may run in the middle of the wait. It is one futex call with an absolute end, so being
 * interrupted and starting anew does not make it longer.
 */
#include "agent/loaded.h"

#include "agent/futex.h"

/* False if nobody has answered. */
static bool answered(struct dp_control *c, uint32_t ticket)
{
	struct dp_timespec end = dp_futex_now();

	end.sec += DP_LOADED_SECONDS;
	for (;;) {
		const uint32_t done = DP_LOAD(&c->loads_done);

		if ((int32_t)(done - ticket) >= 0 || !DP_LOAD(&c->loads_served))
			return true;
		const int64_t ret = dp_futex(&c->loads_done, DP_FUTEX_WAIT_BITSET, done, &end);
		if (ret < 0 && ret != -DP_EINTR && ret != -DP_EAGAIN)
			return false;
	}
}

void dp_loaded_tell(struct dp_agent *agent)
{
	struct dp_control *c;
	uint32_t ticket;

	if (!agent || DP_LOAD(&agent->live) != DP_LIVE)
		return; /* a fork child: its parent's tool is not its own */
	c = dp_agent_control(agent);
	ticket = __atomic_add_fetch(&c->loads, 1, __ATOMIC_ACQ_REL);
	if (!DP_LOAD(&c->loads_served))
		return;
	dp_futex(&c->loads, DP_FUTEX_WAKE, INT32_MAX, NULL);
	if (answered(c, ticket))
		return;
	__atomic_fetch_add(&c->loads_late, 1, __ATOMIC_RELAXED);
	DP_STORE(&c->loads_served, 0);
}

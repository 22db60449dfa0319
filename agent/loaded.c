/* SPDX-License-Identifier: MIT */
/*
 * A thread that loads or unloads a library comes here holding the loader's lock: every thread that loads a library, resolves a
 * symbol lazily, or exits may wait for it. So the wait has a time limit that does not depend on the tool, which may be dead,
 * stopped or slow. A thread that got no answer in time records that, and no thread waits again until a tool says that it answers.
 *
 * The program's signal handlers may run during the wait. It is one futex call with an absolute time limit, so interrupting and
 * restarting it does not make it longer.
 */
#include "agent/loaded.h"

#include "agent/futex.h"

#define SECOND UINT64_C(1000000000)

static struct dp_timespec end_of_wait(const struct dp_control *c)
{
	struct dp_timespec end = dp_futex_now();
	const uint64_t ns = DP_LOAD(&c->loads_wait_ns); /* the program may have overwritten it */
	const uint64_t most = ns && ns <= DP_LOADED_MOST_NS ? ns : DP_LOADED_SECONDS * SECOND;
	const uint64_t part = (uint64_t)end.nsec + most % SECOND;

	end.sec += (int64_t)(most / SECOND + part / SECOND);
	end.nsec = (int64_t)(part % SECOND);
	return end;
}

/* False if there was no answer in time. */
static bool answered(struct dp_control *c, uint32_t ticket)
{
	const struct dp_timespec end = end_of_wait(c);

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
		return; /* a fork child is not served by its parent's tool */
	c = dp_agent_control(agent);
	if (!c)
		return;
	ticket = __atomic_add_fetch(&c->loads, 1, __ATOMIC_ACQ_REL);
	if (!DP_LOAD(&c->loads_served))
		return;
	dp_futex(&c->loads, DP_FUTEX_WAKE, INT32_MAX, NULL);
	if (answered(c, ticket))
		return;
	__atomic_fetch_add(&c->loads_late, 1, __ATOMIC_RELAXED);
	DP_STORE(&c->loads_served, 0);
}

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

#include "agent/syscall.h"

#define SYS_FUTEX         202
#define SYS_CLOCK_GETTIME 228
#define CLOCK_MONOTONIC   1
#define FUTEX_WAKE        1
#define FUTEX_WAIT_BITSET 9 /* the time is absolute, by CLOCK_MONOTONIC. Not private: the tool waits on these words too */
#define EINTR             4
#define EAGAIN            11

static int64_t futex(uint32_t *word, uint64_t op, uint64_t value, const struct dp_timespec *end)
{
	int64_t ret;
	register uint64_t r10 __asm__("r10") = (uint64_t)(uintptr_t)end;
	register uint64_t r8 __asm__("r8") = 0;
	register uint64_t r9 __asm__("r9") = UINT32_MAX;

	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "a"((int64_t)SYS_FUTEX), "D"(word), "S"(op), "d"(value), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return ret;
}

/* False if nobody has answered. */
static bool answered(struct dp_control *c, uint32_t ticket)
{
	struct dp_timespec end = {0, 0};

	dp_syscall4(SYS_CLOCK_GETTIME, CLOCK_MONOTONIC, (uint64_t)(uintptr_t)&end, 0, 0);
	end.sec += DP_LOADED_SECONDS;
	for (;;) {
		uint32_t done = DP_LOAD(&c->loads_done);
		int64_t ret;

		if ((int32_t)(done - ticket) >= 0 || !DP_LOAD(&c->loads_served))
			return true;
		ret = futex(&c->loads_done, FUTEX_WAIT_BITSET, done, &end);
		if (ret < 0 && ret != -EINTR && ret != -EAGAIN)
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
	futex(&c->loads, FUTEX_WAKE, INT32_MAX, NULL);
	if (answered(c, ticket))
		return;
	__atomic_fetch_add(&c->loads_late, 1, __ATOMIC_RELAXED);
	DP_STORE(&c->loads_served, 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * A hit that finds its ring full waits for the tool to read it, where the user has asked for that. Like all our waits it has a
 * time limit that does not depend on the tool, which may be dead, stopped or slow. A thread that waited in vain records that, and
 * no thread waits again until a tool says that it reads the rings.
 *
 * Nothing is reserved meanwhile, and nothing is claimed: the program's signals are delivered, and their handlers may hit probes,
 * fork, or leave by longjmp. After the wait the hit begins anew, because it may be another process by then.
 */
#include "agent/agent.h"
#include "agent/futex.h"

#define LOOK_NS UINT64_C(50000000) /* between two looks whether the tool lives */
#define PASSES  3u                 /* of the tool: one of them began after the ring was found full, and is over */

/* A fork child may be in another pid namespace, where the tool has another id, or none. A zombie counts as alive. */
static bool tool_is_gone(const struct dp_on_full *f, const struct dp_agent *agent)
{
	const uint32_t tool = DP_LOAD(&f->tool);

	return tool && DP_LOAD(&agent->live) == DP_LIVE && dp_syscall4(DP_SYS_TGKILL, tool, tool, 0, 0) == -DP_ESRCH;
}

/*
 * Is the oldest record one that this thread will not commit while it waits? A signal handler's hits may fill the ring on top of a
 * hit, or a handler left a hit for good. A word of 0 alone does not say so: the tool may be about to free it. But it frees all
 * that it can in each pass.
 */
static bool is_own_work(struct dp_slot *slot, const struct dp_patience *p, uint64_t tail, uint32_t passes)
{
	const uint64_t *word = (const uint64_t *)(uintptr_t)(slot->base + (tail & slot->mask));

	if (slot->stuck_at == tail + 1)
		return true;
	if (!p->begun || p->tail != tail || passes - p->since < PASSES || DP_LOAD(word))
		return false;
	slot->stuck_tsc = dp_rdtsc();
	slot->stuck_at = tail + 1;
	return true;
}

/* An empty ring is full if there is no memory for it; unless the tool is just taking some away. */
static bool is_hopeless(struct dp_slot *slot, const struct dp_patience *p, uint64_t tail, uint32_t passes)
{
	if (DP_LOAD(&slot->head) == tail)
		return !(DP_LOAD(&slot->room) & DP_ROOM_HELD);
	return is_own_work(slot, p, tail, passes);
}

static void begin(struct dp_on_full *f, struct dp_patience *p)
{
	p->begun = dp_rdtsc();
	__atomic_fetch_add(&f->hits, 1, __ATOMIC_RELAXED);
}

/* How long the hit may still wait at a time, in ns; 0: no more. By the time stamp counter, which no filter can forbid. */
static uint64_t slice(const struct dp_on_full *f, const struct dp_patience *p)
{
	const uint64_t most = DP_LOAD(&f->wait_ticks), gone = dp_rdtsc() - p->begun;
	const uint64_t left = gone < most ? (((most - gone) >> 16) + 1) * DP_LOAD(&f->tick) >> 16 : 0;

	return left < LOOK_NS ? left : LOOK_NS;
}

/* False if time is up, or nobody reads the rings any more. */
static bool rest(struct dp_on_full *f, const struct dp_agent *agent, const struct dp_patience *p)
{
	struct dp_timespec most = {0, 0};

	while ((most.nsec = (int64_t)slice(f, p)) && DP_LOAD(&f->drained) == p->seen) {
		const int64_t ret = dp_futex(&f->drained, DP_FUTEX_WAIT, p->seen, &most);

		if (ret == -DP_ETIMEDOUT ? tool_is_gone(f, agent) : ret && ret != -DP_EINTR && ret != -DP_EAGAIN)
			return false;
	}
	return most.nsec;
}

/* The others must not wait for the rest of their time. */
static void give_up(struct dp_on_full *f)
{
	__atomic_fetch_add(&f->late, 1, __ATOMIC_RELAXED);
	DP_STORE(&f->served, 0);
	__atomic_fetch_add(&f->drained, 1, __ATOMIC_SEQ_CST);
	dp_futex(&f->drained, DP_FUTEX_WAKE, INT32_MAX, NULL);
}

bool dp_full_wait(struct dp_on_full *f, const struct dp_agent *agent, struct dp_slot *slot, struct dp_patience *p)
{
	const uint32_t passes = DP_LOAD(&f->passes);
	const uint64_t tail = DP_LOAD(&slot->tail);

	if (!DP_LOAD(&f->served) || is_hopeless(slot, p, tail, passes))
		return false;
	if (!p->begun || p->tail != tail)
		p->since = passes;
	if (!p->begun)
		begin(f, p);
	p->tail = tail;
	__atomic_fetch_add(&f->waits, 1, __ATOMIC_SEQ_CST);
	dp_futex(&f->waits, DP_FUTEX_WAKE, 1, NULL); /* the tool may sleep there */
	if (rest(f, agent, p))
		return true;
	give_up(f);
	return false;
}

void dp_full_note(struct dp_on_full *f, const struct dp_patience *p)
{
	__atomic_fetch_add(&f->ticks, dp_rdtsc() - p->begun, __ATOMIC_RELAXED);
}

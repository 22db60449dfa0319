/* SPDX-License-Identifier: MIT */
/*
 * A thread with a hit for a snapshot waits here, inside the hit, until the tool has inspected the process. Like all our waits it
 * has a time limit that does not depend on the tool, which may be dead, stopped or slow. A thread that got no answer in time
 * records that, and no thread waits again until a tool says that it answers.
 */
#include "agent/ring/park.h"

#include "agent/futex.h"

#define NS_PER_SECOND UINT64_C(1000000000)

static bool is_due(const struct dp_park *park, uint64_t tsc)
{
	return DP_LOAD(&park->left) && (int64_t)(tsc - DP_LOAD(&park->next_tsc)) >= 0;
}

static uint64_t lost(uint64_t *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	return 0;
}

static struct dp_timespec end_of(const struct dp_park *park)
{
	struct dp_timespec end = dp_futex_now();
	const uint64_t ns = DP_LOAD(&park->wait_ns); /* the program may have overwritten it */
	const uint64_t nsec = (uint64_t)end.nsec + (ns <= DP_LOADED_MOST_NS ? ns : DP_LOADED_MOST_NS);

	end.sec += (int64_t)(nsec / NS_PER_SECOND);
	end.nsec = (int64_t)(nsec % NS_PER_SECOND);
	return end;
}

static bool move(struct dp_park *park, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&park->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/*
 * Called by the owner. False if there was no answer by `end`. The tool may inspect the process several times and let
 * the other threads run in between: that ends at `end` too, and what it has seen by then is a snapshot.
 */
static bool wait(struct dp_park *park, const struct dp_timespec *end)
{
	__atomic_exchange_n(&park->state, DP_PARK_PARKED, __ATOMIC_SEQ_CST);
	if (!DP_LOAD(&park->served)) /* the tool left in between, and may not have seen us */
		move(park, DP_PARK_PARKED, DP_PARK_REFUSED);
	dp_futex(&park->state, DP_FUTEX_WAKE, INT32_MAX, NULL);
	/* An answer at the last moment counts: the tool has then changed the state. */
	if (!dp_futex_wait(&park->state, DP_PARK_PARKED, end) && move(park, DP_PARK_PARKED, DP_PARK_FREE))
		return false;
	if (!dp_futex_wait(&park->state, DP_PARK_KEPT, end))
		move(park, DP_PARK_KEPT, DP_PARK_DONE);
	return true;
}

struct hit {
	const struct dp_regs *regs;
	const struct dp_parked *who;
	uint64_t tsc;
	uint32_t tid;
	struct dp_timespec end;
};

/* Delays the next snapshot by at least the time that this one took, so that a slow tool does not stall a busy program. */
static void rest(struct dp_park *park, const struct hit *hit)
{
	const uint64_t now = dp_rdtsc(), next = now + (now - hit->tsc);

	if ((int64_t)(next - DP_LOAD(&park->next_tsc)) > 0)
		DP_STORE(&park->next_tsc, next);
}

static uint64_t take_place(struct dp_park *park, const struct hit *hit)
{
	const uint64_t id = park->salt + ++park->serial;

	park->left--;
	DP_STORE(&park->next_tsc, hit->tsc + park->interval);
	park->id = id;
	park->probe = hit->who->probe;
	park->regs = *hit->regs;
	const bool answered = wait(park, &hit->end);
	rest(park, hit);
	if (answered) {
		const bool taken = DP_LOAD(&park->state) == DP_PARK_DONE;

		DP_STORE(&park->state, DP_PARK_FREE);
		return taken ? id : lost(&park->missed);
	}
	DP_STORE(&park->served, 0);
	__atomic_fetch_add(&park->late, 1, __ATOMIC_RELAXED);
	return 0;
}

/* With the owner's first store the tool can tell whether the place is still in use. */
static bool claim(struct dp_park *park, const struct hit *hit)
{
	uint64_t nobody = 0;

	return __atomic_compare_exchange_n(&park->owner, &nobody, dp_park_owner(hit->tid, hit->who->process), false, __ATOMIC_ACQ_REL,
	                                   __ATOMIC_ACQUIRE);
}

static uint64_t use_place(struct dp_park *park, const struct hit *hit)
{
	/* Another thread's hit may have come between the two checks. */
	const uint64_t id = is_due(park, hit->tsc) ? take_place(park, hit) : lost(&park->over);

	DP_STORE(&park->owner, 0);
	return id;
}

/* A vfork child has our memory, and blocks its parent, which could not be stopped for a snapshot. */
static bool is_own(const struct dp_parked *who)
{
	return (uint32_t)dp_syscall0(DP_SYS_GETPID) == who->pid;
}

uint64_t dp_park(struct dp_park *park, const struct dp_regs *regs, const struct dp_parked *who)
{
	struct hit hit = {.regs = regs, .who = who, .tsc = dp_rdtsc()};
	uint64_t mask = 0;

	if (!DP_LOAD(&park->served))
		return lost(&park->missed);
	if (!is_due(park, hit.tsc))
		return lost(&park->over);
	if (!is_own(who) || dp_syscall_block_signals(&mask))
		return lost(&park->missed);
	/* All system calls that a seccomp filter may forbid come before the claim, except the wait itself. */
	hit.tid = (uint32_t)dp_syscall0(DP_SYS_GETTID);
	hit.end = end_of(park);
	const uint64_t id = claim(park, &hit) ? use_place(park, &hit) : lost(&park->missed);
	dp_syscall_restore_signals(&mask);
	return id;
}

/* Uses the registers that the stub saved for the unwinder (capture->regs). */
DP_EXPORT void dp_agent_park(struct dp_capture *capture, const struct dp_op *op);
void dp_agent_park(struct dp_capture *capture, const struct dp_op *op)
{
	const struct dp_agent *agent = (const struct dp_agent *)(uintptr_t)capture->desc->agent;
	struct dp_control *control = dp_agent_control(agent);
	const struct dp_parked who = {.probe = capture->desc->probe, .pid = agent->pid, .process = agent->process};
	const uint64_t live = DP_LOAD(&agent->live);
	uint64_t id = 0;

	(void)op;
	if (control && (live == DP_LIVE || (live == DP_JOINED && DP_LOAD(&control->follow.parks))))
		id = dp_park(&control->park, capture->regs, &who);
	else if (control && live == DP_JOINED)
		lost(&control->park.missed);
	memcpy(capture->cursor, &id, sizeof(id));
	capture->cursor += sizeof(id);
}

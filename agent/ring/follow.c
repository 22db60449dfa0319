/* SPDX-License-Identifier: MIT */
/*
 * A fork child joins: its private region, which the kernel has wiped, is filled from the control page (decision 0037).
 *
 * All signals are blocked meanwhile: a handler that forks in the middle would leave its child with half of our state, number
 * included. Other threads may join at the same time. They write the same values, and the first one's number.
 */
#include "agent/agent.h"
#include "agent/syscall.h"

/* False if all numbers are used up. */
static bool take_number(struct dp_agent *agent, struct dp_follow *follow)
{
	uint32_t number = DP_LOAD(&follow->joined);

	if (agent->process)
		return true;
	do {
		if (number >= DP_TID_MASK)
			return false;
	} while (!__atomic_compare_exchange_n(&follow->joined, &number, number + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	if (dp_cmpxchg(&agent->process, 0, number + 1))
		__atomic_fetch_add(&follow->processes, 1, __ATOMIC_RELAXED);
	return true;
}

static void fill(struct dp_agent *agent, struct dp_control *control)
{
	agent->pid = (uint32_t)dp_syscall0(DP_SYS_GETPID);
	if (!take_number(agent, &control->follow))
		return;
	agent->identity = control->follow.identity;
	agent->tid_offset = control->follow.tid_offset;
	agent->unwind = control->follow.unwind + (control->follow.unwind ? DP_LOAD(&control->unwind_latest) : 0);
	agent->nslots = control->nslots;
	agent->exhausted = 0; /* its parent's, if a handler has forked in the middle of a search */
	agent->slots = (uint64_t)(uintptr_t)control + control->slots_offset;
	agent->control = (uint64_t)(uintptr_t)control;
	DP_STORE(&agent->live, DP_JOINED);
}

bool dp_follows(struct dp_agent *agent, const struct dp_probe_desc *desc)
{
	struct dp_control *control = (struct dp_control *)(uintptr_t)dp_desc_control(desc);
	uint64_t mask;

	if (!DP_LOAD(&control->follow.on))
		return false;
	if (DP_LOAD(&agent->live) == DP_JOINED)
		return true;
	if (dp_syscall_block_signals(&mask))
		return false;
	if (!DP_LOAD(&agent->live))
		fill(agent, control);
	dp_syscall_restore_signals(&mask);
	return DP_LOAD(&agent->live) == DP_JOINED;
}

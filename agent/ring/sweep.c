/* SPDX-License-Identifier: MIT */
/*
 * Frees slots of threads that are gone. A tool normally does this; without one (flight recorder), the threads that find no slot
 * do. From within the process the answer of tgkill is final: a thread that it does not find runs no instruction of the program
 * any more. A slot whose tid was given to another thread is kept: that thread counts as alive.
 */
#include "agent/agent.h"
#include "agent/syscall.h"

#define PATIENCE 1024u /* lost hits between two searches: each costs a system call per slot */

static bool unattended(const struct dp_agent *agent)
{
	const struct dp_control *control = dp_agent_control(agent);

	return control && DP_LOAD(&control->overwrite) == 1;
}

bool dp_slots_retry(struct dp_agent *agent)
{
	uint64_t refused = DP_LOAD(&agent->refused) + 1;

	if (!unattended(agent))
		return false;
	DP_STORE(&agent->refused, refused); /* inexact if other threads count at the same time */
	return refused % PATIENCE == 0;
}

static bool gone(const struct dp_agent *agent, uint32_t tid)
{
	return tid && dp_syscall4(DP_SYS_TGKILL, agent->pid, tid, 0, 0) == -DP_ESRCH;
}

unsigned dp_slots_sweep(struct dp_agent *agent)
{
	struct dp_control *control = dp_agent_control(agent);
	struct dp_slot *slots = dp_agent_slots(agent);
	unsigned freed = 0;

	for (uint32_t i = 0; slots && i < DP_LOAD(&agent->nslots) && unattended(agent); i++) {
		uint64_t word = DP_LOAD(dp_slot_word(&slots[i]));

		if (word >> 32 != DP_SLOT_USED || !gone(agent, (uint32_t)word & DP_TID_MASK))
			continue;
		freed += dp_cmpxchg(dp_slot_word(&slots[i]), word, dp_slot_pack(0, DP_SLOT_DEAD));
	}
	if (freed && control)
		__atomic_fetch_add(&control->slots_freed, 1, __ATOMIC_RELEASE);
	return freed;
}

/* SPDX-License-Identifier: MIT */
/* The agent's part in snapshots of hits: shared by park.c and its unit test. */
#ifndef DP_AGENT_RING_PARK_H
#define DP_AGENT_RING_PARK_H

#include "agent/agent.h"

struct dp_parked { /* who waits */
	uint32_t probe;
	uint32_t pid; /* this and the following as in struct dp_agent */
	uint64_t process;
};
/*
 * Waits until the tool has taken a snapshot with this thread at `regs`. Returns its id, or 0 if there is none (limits, another
 * thread waits, no answer in time), which is counted.
 */
uint64_t dp_park(struct dp_park *park, const struct dp_regs *regs, const struct dp_parked *who);

#endif

/* SPDX-License-Identifier: MIT */
/* The agent's part in snapshots of hits: what park.c and its unit test share. */
#ifndef DP_AGENT_PARK_H
#define DP_AGENT_PARK_H

#include "agent/agent.h"

/*
 * Waits until the tool has taken a snapshot with this thread at `regs`; the snapshot's id, or 0: there is none (limits, another
 * thread waits, nobody has answered in time), which is counted.
 */
uint64_t dp_park(struct dp_park *park, const struct dp_regs *regs, uint32_t probe);

#endif

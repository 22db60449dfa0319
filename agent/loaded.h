/* SPDX-License-Identifier: MIT */
/* The agent's part in waiting for libraries: shared by loaded.c and its unit test. */
#ifndef DP_AGENT_LOADED_H
#define DP_AGENT_LOADED_H

#include "agent/agent.h"

/*
 * Tells the tool that the loader's list of modules changes or has changed, and waits until it has looked: at most
 * as long as the tool has asked for (DP_LOADED_SECONDS if it has not), and not at all if no tool answers. `agent` may be a fork
 * child's, or NULL.
 */
void dp_loaded_tell(struct dp_agent *agent);

#endif

/* SPDX-License-Identifier: MIT */
/* Expressions' queries to the agent (agent/abi.h, DP_SYM_ASK). */
#ifndef DP_AGENT_ASK_H
#define DP_AGENT_ASK_H

#include "agent/agent.h"

struct dp_ask_result { /* returned in rax and rdx */
	uint64_t value;
	uint64_t known; /* 0: no result */
};

/* Called by dp_thunk_ask. */
struct dp_ask_result dp_ask(uint64_t operand, const struct dp_ask *ask);
/* Base of the fs segment, by a system call. */
uint64_t dp_thread_base(void);

/* ---- match.c: strings, character by character ------------------------------------------------ */

struct dp_ask_result dp_match(uint64_t addr, const struct dp_ask *ask);

#endif

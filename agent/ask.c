/* SPDX-License-Identifier: MIT */
/* Queries of an expression, except those about strings. */
#include "agent/ask.h"
#include "agent/syscall.h"

#define DP_SYS_ARCH_PRCTL 158
#define DP_SYS_GETCPU     309
#define DP_ARCH_GET_FS    0x1003

static uint64_t processor(void)
{
	uint32_t cpu = 0;

	dp_syscall4(DP_SYS_GETCPU, (uint64_t)(uintptr_t)&cpu, 0, 0, 0);
	return cpu;
}

uint64_t dp_thread_base(void)
{
	uint64_t base = 0;

	dp_syscall4(DP_SYS_ARCH_PRCTL, DP_ARCH_GET_FS, (uint64_t)(uintptr_t)&base, 0, 0);
	return base;
}

/*
 * Of a fork child: the word in struct dp_agent is wiped, until here or its first event. Asks again after writing it: a signal
 * handler may fork in between.
 */
static uint64_t process_id(struct dp_agent *agent)
{
	uint32_t pid;

	do {
		pid = (uint32_t)dp_syscall0(DP_SYS_GETPID);
		DP_STORE(&agent->pid, pid);
	} while (pid != (uint32_t)dp_syscall0(DP_SYS_GETPID));
	return pid;
}

static struct dp_ask_result load(uint64_t addr, const struct dp_ask *ask)
{
	struct dp_ask_result a = {0, 1};

	if (dp_self_read((const struct dp_agent *)(uintptr_t)ask->agent, &a.value, addr, ask->size))
		a.known = 0;
	return a;
}

struct dp_ask_result dp_ask(uint64_t operand, const struct dp_ask *ask)
{
	switch (ask->kind) {
	case DP_ASK_LOAD:
		return load(operand, ask);
	case DP_ASK_TID:
		return (struct dp_ask_result){(uint32_t)dp_syscall0(DP_SYS_GETTID), 1};
	case DP_ASK_CPU:
		return (struct dp_ask_result){processor(), 1};
	case DP_ASK_PID:
		return (struct dp_ask_result){process_id((struct dp_agent *)(uintptr_t)ask->agent), 1};
	case DP_ASK_THREAD:
		return (struct dp_ask_result){dp_thread_base(), 1};
	default:
		return dp_match(operand, ask);
	}
}

/* SPDX-License-Identifier: MIT */
#include "agent/agent.h"
#include "agent/syscall.h"

void dp_backtrace_switch(struct dp_capture *capture, const struct dp_op *op);

void dp_agent_backtrace_apart(struct dp_capture *capture, const struct dp_op *op)
{
	uint64_t mask;
	const int64_t failed = dp_syscall_block_signals(&mask);

	dp_backtrace_switch(capture, op);
	if (!failed)
		dp_syscall_restore_signals(&mask);
}

/* SPDX-License-Identifier: MIT */
#include "agent/agent.h"
#include "agent/syscall.h"

static void site_alone(struct dp_capture *capture)
{
	capture->cursor[0] = 1;
	__builtin_memcpy(capture->cursor + 1, &capture->regs->rip, 8);
	capture->cursor += 9;
}

void dp_agent_backtrace_apart(struct dp_capture *capture, const struct dp_op *op)
{
	uint64_t mask;
	const int64_t failed = dp_syscall_block_signals(&mask);

	if (!dp_apart_call(capture, op, dp_agent_backtrace))
		site_alone(capture);
	if (!failed)
		dp_syscall_restore_signals(&mask);
}

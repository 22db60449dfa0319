/* SPDX-License-Identifier: MIT */
#include "agent/aggregate.c"

/* No frames. Tests of the unwinder have their own. */
__attribute__((weak)) void dp_agent_backtrace(struct dp_capture *capture, const struct dp_op *op)
{
	(void)op;
	*capture->cursor++ = 0;
}

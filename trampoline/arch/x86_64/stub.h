/* SPDX-License-Identifier: MIT */
/* The condition-and-capture compiler: what runs at a hit before the displaced instructions do. */
#ifndef DP_TRAMPOLINE_X86_64_STUB_H
#define DP_TRAMPOLINE_X86_64_STUB_H

#include "trampoline/trampoline.h"

/*
 * Appends to `out`, which will lie at target address `at` (16-byte aligned): descriptor, operations, out-of-line code, then
 * the stub. Execution of the stub enters at *entry (>= at, 16-aligned) and falls through at the end of the bytes with every
 * register, flag and the stack as at the site; the displaced instructions must follow there. On failure `out` may have grown.
 *
 * Stack below the site's rsp, red zone included: DP_STUB_STACK bytes, and what the agent's entry points use on top of it.
 */
struct dp_error *dp_stub_emit(struct dp_buf *out, uint64_t at, const struct dp_runtime *rt, const struct dp_request *req,
                              uint64_t *entry) DP_MUST_CHECK;

#define DP_STUB_STACK       256u /* probes with registers and constants only */
#define DP_STUB_STACK_CALLS 512u /* probes that call helpers of the agent */

#endif

/* SPDX-License-Identifier: MIT */
/* The condition-and-capture compiler: the code that a hit runs before the displaced instructions. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EMIT_STUB_H
#define DP_TRAMPOLINE_ARCH_X86_64_EMIT_STUB_H

#include "trampoline/trampoline.h"

struct dp_stub {
	uint64_t entry;
	uint8_t nfixups;
	struct dp_plan_fixup fixup[DP_PLAN_FIXUPS];
};

/*
 * Appends to `out`, for target address `at` (16-byte aligned): descriptor, operations, out-of-line code, then the stub. The stub
 * starts at ret->entry (>= at, 16-aligned) and falls through at the end of the bytes with every register, flag and the stack as
 * at the site; the displaced instructions must follow there. On failure `out` may have grown. Loads that may fault are listed in
 * `fixup`, by offsets from `at`.
 *
 * Stack below the site's rsp, red zone included: DP_STUB_STACK bytes, and what the agent's entry points use in addition.
 */
struct dp_error *dp_stub_emit(struct dp_buf *out, uint64_t at, const struct dp_runtime *rt, const struct dp_request *req,
                              struct dp_stub *ret) DP_MUST_CHECK;

/* Resolves labels and copies the guards to ret->fixup. False if that is not possible. */
struct dp_asm;
bool dp_stub_finish(struct dp_asm *a, struct dp_stub *ret);

#define DP_STUB_STACK       320u /* probes with registers and constants only */
#define DP_STUB_STACK_CALLS 512u /* probes that call helpers of the agent */

#endif

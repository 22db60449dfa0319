/* SPDX-License-Identifier: MIT */
/* Stubs that count instead of recording, and those that only note the start of a call. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EMIT_AGGREGATE_H
#define DP_TRAMPOLINE_ARCH_X86_64_EMIT_AGGREGATE_H

#include "trampoline/arch/x86_64/emit/frame.h"
#include "trampoline/arch/x86_64/emit/stub.h"

/* Like dp_stub_emit(), for requests with `answer` or `enters`. */
struct dp_error *dp_agg_stub_emit(struct dp_buf *out, uint64_t at, const struct dp_runtime *rt, const struct dp_request *req,
                                  struct dp_stub *ret) DP_MUST_CHECK;

/* Loads this thread's block into rsi; changes rcx, rdx and flags. To `slow` if only the agent can find it. */
void dp_agg_block(struct dp_asm *a, const struct dp_runtime *rt, struct dp_label slow);
/*
 * The code at `slow`: calls the agent with the descriptor at label `desc`. rsi: the block, with flags NE if it is shared; to
 * `lost` if there is none. Preserves rax; changes rcx, rdx.
 */
void dp_agg_ask(struct dp_asm *a, const struct dp_runtime *rt, struct dp_label desc, struct dp_label lost);
/* Adds one to `what` (an offset in struct dp_agg_loss) in the block in rsi. Locked, for shared blocks. */
void dp_agg_lose(struct dp_asm *a, const struct dp_runtime *rt, const struct dp_request *req, size_t what);

/* aggregate_cell.c: one aggregation; its cells are at disp(%rsi), the value in rax. Changes rax, rcx, rdx and flags. */
enum dp_agg_how {
	DP_AGG_ALONE,  /* no other thread uses the cells, and the last hit may wait in the word behind them */
	DP_AGG_OWN,    /* no other thread uses them */
	DP_AGG_LOCKED, /* others do */
};
void dp_agg_apply(struct dp_asm *a, const struct dp_runtime *rt, const struct dp_agg *answer, int64_t disp, enum dp_agg_how how);
/* Words of this aggregation alone. */
unsigned dp_agg_own_words(const struct dp_agg *answer);

#endif

/* SPDX-License-Identifier: MIT */
/* Stubs that count instead of recording, and those that only note when a call begins. */
#ifndef DP_TRAMPOLINE_X86_64_ANSWER_H
#define DP_TRAMPOLINE_X86_64_ANSWER_H

#include "trampoline/arch/x86_64/emit/frame.h"
#include "trampoline/arch/x86_64/emit/stub.h"

/* As dp_stub_emit(), for requests with `answer` or `enters`. */
struct dp_error *dp_answer_stub_emit(struct dp_buf *out, uint64_t at, const struct dp_runtime *rt, const struct dp_request *req,
                                     struct dp_stub *ret) DP_MUST_CHECK;

/* This thread's block into rsi; changes rcx, rdx and flags. To `slow` if only the agent knows it. */
void dp_answer_block(struct dp_asm *a, const struct dp_runtime *rt, struct dp_label slow);
/*
 * What `slow` does: asks the agent, whose descriptor `desc` labels. rsi: the block, and the flags say NE if it is everybody's; to
 * `lost` if there is none. Keeps rax; changes rcx, rdx.
 */
void dp_answer_ask(struct dp_asm *a, const struct dp_runtime *rt, struct dp_label desc, struct dp_label lost);
/* One more of `what` (an offset in struct dp_answer_loss) in the block in rsi. Locked: for all to use. */
void dp_answer_lose(struct dp_asm *a, const struct dp_runtime *rt, const struct dp_request *req, size_t what);

/* answer_cell.c: the cells lie at disp(%rsi), the value in rax; `locked`: others write there too. Changes rax, rcx, rdx and
 * flags. */
void dp_answer_apply(struct dp_asm *a, const struct dp_answer *answer, int64_t disp, bool locked);

#endif

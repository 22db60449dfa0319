/* SPDX-License-Identifier: MIT */
/* Walks that are repeated (unwind_memo.c). */
#ifndef DP_AGENT_UNWIND_UNWIND_MEMO_H
#define DP_AGENT_UNWIND_UNWIND_MEMO_H

#include "agent/unwind/unwind_walk.h"

struct dp_recalled {
	uint32_t n; /* frames written; 0: none, the walk starts at the hit */
	int whole;  /* the walk ends here, or has reached its limit; else it goes on with: */
	uint64_t pc, rsp, rbp, rbx;
};

/*
 * Repeats the plain frames of an earlier walk from here, if they would be the same now. Of `w` needs slot, generation and range.
 * Writes at most `limit` frames.
 */
struct dp_recalled dp_memo_recall(const struct dp_walk *w, const struct dp_regs *regs, uint8_t *to, uint32_t limit);
/* After a walk that was not recalled: keeps its plain frames for the next one. `w` is as it was before the first frame. */
void dp_memo_learn(struct dp_walk *w, uint32_t limit);

#endif

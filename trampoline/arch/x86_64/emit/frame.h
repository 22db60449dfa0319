/* SPDX-License-Identifier: MIT */
/* How a stub begins and ends: see stub.c. All saved data is above rsp, because a signal may arrive at any time. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EMIT_FRAME_H
#define DP_TRAMPOLINE_ARCH_X86_64_EMIT_FRAME_H

#include "trampoline/arch/x86_64/expr/stub_view.h"
#include "trampoline/trampoline.h"

/* Steps over the red zone and saves rax; `flags`: saves the flags in rax. */
void dp_frame_enter(struct dp_asm *a, bool flags);
void dp_frame_leave(struct dp_asm *a, bool flags);
/* To `leave` if one of the request's words is 0; the flags are in rax, or are not preserved. */
void dp_frame_gates(struct dp_asm *a, const struct dp_request *req, struct dp_label leave);
/*
 * Words above the saved registers: a duration; a call's number too; or a duration and two words for the agent's result. Above
 * them those of DP_FRAME_WORDS(n), and one for the number of hits.
 */
enum dp_frame_room {
	DP_FRAME_PLAIN = 0,
	DP_FRAME_TIMED = 1,
	DP_FRAME_CALLED = 2,
	DP_FRAME_STACKED = 3,
	DP_FRAME_COUNTED = 8 /* or'ed in */
};
#define DP_FRAME_WORDS(n) ((n) << 4) /* or'ed in */
#define DP_FRAME_OUT      40         /* with DP_FRAME_STACKED: the two words, from rsp */
/* The first of the words of DP_FRAME_WORDS(), from rsp. */
int32_t dp_frame_words(unsigned room);
/* Frees rax, rcx, rdx, rsi: dp_frame_view() applies from here on. */
void dp_frame_save(struct dp_asm *a, unsigned room);
void dp_frame_restore(struct dp_asm *a, unsigned room);
/* Whether the gates can be tested before dp_frame_enter(), where nothing may be pushed. */
bool dp_frame_gates_near(const struct dp_asm *a, const struct dp_request *req);
struct dp_view dp_frame_view(uint64_t rip, unsigned room);
/*
 * Counts a hit and stores the number of hits, including this one, in the view's `hits`. A fork child shares the word with
 * its parent, and only counts if it is followed. Leaves a duration that the view has in rax; changes rax, rcx, rdx and flags.
 */
void dp_frame_count(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, uint64_t counter);

#endif

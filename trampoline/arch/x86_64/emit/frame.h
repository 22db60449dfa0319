/* SPDX-License-Identifier: MIT */
/* How a stub begins and ends: see stub.c. Everything between lies above rsp, because a signal may arrive anywhere. */
#ifndef DP_TRAMPOLINE_X86_64_FRAME_H
#define DP_TRAMPOLINE_X86_64_FRAME_H

#include "trampoline/arch/x86_64/expr/stub_view.h"
#include "trampoline/trampoline.h"

/* Steps over the red zone, frees rax for the flags; `flags`: which are wanted. */
void dp_frame_enter(struct dp_asm *a, bool flags);
void dp_frame_leave(struct dp_asm *a, bool flags);
/* To `leave` if one of the request's words is 0; the flags are in rax by now, or nobody wants them. */
void dp_frame_gates(struct dp_asm *a, const struct dp_request *req, struct dp_label leave);
/* Words above the saved registers: a duration, and two for what the agent answers; above them one for the number of hits. */
enum dp_frame_room { DP_FRAME_PLAIN = 0, DP_FRAME_TIMED = 1, DP_FRAME_STACKED = 3, DP_FRAME_COUNTED = 8 /* or'ed to one of them */ };
#define DP_FRAME_OUT 40 /* of DP_FRAME_STACKED: those two, from rsp */
/* Frees rax, rcx, rdx, rsi: behind this dp_frame_view() holds. */
void dp_frame_save(struct dp_asm *a, unsigned room);
void dp_frame_restore(struct dp_asm *a, unsigned room);
/* Can they be looked at in front of dp_frame_enter(), where nothing may be pushed? */
bool dp_frame_gates_near(const struct dp_asm *a, const struct dp_request *req);
struct dp_view dp_frame_view(uint64_t rip, unsigned room);
/*
 * One hit more: how many there have been, this one included, into the view's `hits`. A fork child counts nothing: the word is its parent's
 * as well. Leaves a duration that the view has in rax; changes rax, rcx, rdx and flags.
 */
void dp_frame_count(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, uint64_t counter);

#endif

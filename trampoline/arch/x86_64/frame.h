/* SPDX-License-Identifier: MIT */
/* How a stub begins and ends: see stub.c. Everything between lies above rsp, because a signal may arrive anywhere. */
#ifndef DP_TRAMPOLINE_X86_64_FRAME_H
#define DP_TRAMPOLINE_X86_64_FRAME_H

#include "trampoline/arch/x86_64/stub_view.h"
#include "trampoline/trampoline.h"

/* Steps over the red zone, frees rax for the flags. */
void dp_frame_enter(struct dp_asm *a);
void dp_frame_leave(struct dp_asm *a);
/* To `leave` if one of the request's words is 0; the flags are in rax by now. */
void dp_frame_gates(struct dp_asm *a, const struct dp_request *req, struct dp_label leave);
/* Frees rax, rcx, rdx, rsi: behind this dp_frame_view() holds. `timed`: with room for a duration. */
void dp_frame_save(struct dp_asm *a, bool timed);
void dp_frame_restore(struct dp_asm *a, bool timed);
struct dp_view dp_frame_view(uint64_t rip, bool timed);

#endif

/* SPDX-License-Identifier: MIT */
/* Durations of calls: their entries are kept by thread and stack address until they return. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EMIT_PAIR_H
#define DP_TRAMPOLINE_ARCH_X86_64_EMIT_PAIR_H

#include "trampoline/arch/x86_64/expr/stub_view.h"
#include "trampoline/trampoline.h"

/* Time stamp into rax; changes rdx. */
void dp_pair_now(struct dp_asm *a);
/*
 * With the thread's block in rsi, which goroutines do not need: notes the start of a call, and stores its number at view->call
 * (0: not stored). Changes rax, rcx, rdx, rsi and flags.
 */
void dp_pair_enter(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, const struct dp_request *req);
/*
 * With the block in rsi, as above, and dp_pair_now() in rax: the duration in ns into rax and to view->duration (0: not stored),
 * and drops the entry. To `unpaired` if there is no entry. With view->call, the call's number goes there. Changes rax, rcx, rdx,
 * flags, and with view->call rsi.
 */
void dp_pair_leave(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, const struct dp_request *req,
                   struct dp_label unpaired);
/*
 * Stores a call's number, which is in rcx, at view->call, if there is room for it: its identity xor the time at which it was
 * noted. Both differ between the calls of one thread, and the identities of threads differ in bits that times change once in
 * minutes.
 */
void dp_pair_number(struct dp_asm *a, const struct dp_view *view);
/* Ticks in rax to ns, into rax and to view->duration. Changes rcx, rdx and flags. */
void dp_pair_ns(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt);

/* pair_goroutine.c: the same for calls that goroutines make (request.goroutines). */
void dp_pair_goroutine_enter(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, uint16_t pair);
void dp_pair_goroutine_leave(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, uint16_t pair,
                             struct dp_label unpaired);
/* Why no goroutine can be known in this process, or NULL. */
struct dp_error *dp_pair_goroutine_check(const struct dp_runtime *rt) DP_MUST_CHECK;

#endif

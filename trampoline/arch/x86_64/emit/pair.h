/* SPDX-License-Identifier: MIT */
/* Durations of calls: their entries are kept by thread and stack address until they return. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EMIT_PAIR_H
#define DP_TRAMPOLINE_ARCH_X86_64_EMIT_PAIR_H

#include "trampoline/arch/x86_64/expr/stub_view.h"
#include "trampoline/trampoline.h"

/* Time stamp into rax; changes rdx. */
void dp_pair_now(struct dp_asm *a);
/* With the thread's block in rsi: notes the start of a call. Changes rax, rcx, rdx, rsi and flags. */
void dp_pair_enter(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, uint16_t pair);
/*
 * With the block in rsi and dp_pair_now() in rax: the duration in ns into rax and to view->duration (0: not stored), and drops
 * the entry. To `unpaired` if there is no entry. Changes rax, rcx, rdx and flags.
 */
void dp_pair_leave(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, uint16_t pair,
                   struct dp_label unpaired);

#endif

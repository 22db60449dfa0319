/* SPDX-License-Identifier: MIT */
/* Conditions as machine code. */
#ifndef DP_TRAMPOLINE_X86_64_EXPR_H
#define DP_TRAMPOLINE_X86_64_EXPR_H

#include "probes/probes.h"
#include "trampoline/arch/x86_64/stub_view.h"

/* Can the condition be decided with flags alone, without a scratch register? Then dp_view_light() is enough for it. */
bool dp_expr_is_light(const struct dp_expr *e);

/*
 * Emits code that jumps to `to` if the condition is `sense`, and else falls through. Changes rax, rcx, rdx and the flags; of a
 * light condition the flags only. Pushes at most DP_EXPR_PUSHES words. Sets a->failed if that is not enough.
 */
void dp_expr_jump(struct dp_asm *a, const struct dp_view *view, const struct dp_expr *e, bool sense, struct dp_label to);
#define DP_EXPR_PUSHES 8u

#endif

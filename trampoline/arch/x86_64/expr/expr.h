/* SPDX-License-Identifier: MIT */
/* Expressions as machine code. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EXPR_EXPR_H
#define DP_TRAMPOLINE_ARCH_X86_64_EXPR_EXPR_H

#include "probes/probes.h"
#include "trampoline/arch/x86_64/expr/stub_view.h"
#include "trampoline/trampoline.h"

#define DP_EXPR_PUSHES 8u /* words that may be pushed */

/* Where a failing expression continues: at[n] with n words pushed. */
struct dp_exits {
	uint8_t n; /* 0: it cannot fail */
	struct dp_label at[DP_EXPR_PUSHES + 1];
};
void dp_exits_init(struct dp_asm *a, const struct dp_expr *e, struct dp_exits *ret);
/* Emits the code that pops the pushed words. The code for a failure follows. */
void dp_exits_put(struct dp_asm *a, const struct dp_exits *exits);

struct dp_expr_code {
	struct dp_asm *a;
	const struct dp_runtime *rt;
	struct dp_exits exits;
	struct dp_view view; /* view.pushed follows the pushes */
	uint8_t words;       /* number of words pushed */
	uint16_t changed;    /* bit r: register r was used. Only saved registers of the view may be, and of those only rax, rcx,
	                        rdx */
};

/* Whether the condition needs flags only and no scratch register. Then dp_view_light() is enough. */
bool dp_expr_is_light(const struct dp_expr *e);
/* The registers that must have been saved. */
enum dp_view_level dp_expr_level(const struct dp_runtime *rt, const struct dp_expr *e);
/* The maximum of guards (asm.h) that it needs. */
unsigned dp_expr_guards(const struct dp_expr *e);

/*
 * Emits code that jumps to `to` if the condition is `sense`, and else falls through. Changes rax, rcx, rdx if the view has them
 * saved, and the flags; a light condition changes the flags only. Sets a->failed if the stack or the view are insufficient.
 */
void dp_expr_jump(struct dp_expr_code *c, const struct dp_expr *e, bool sense, struct dp_label to);
/* The same for the value, into rax. */
void dp_expr_value(struct dp_expr_code *c, const struct dp_expr *e);

#endif

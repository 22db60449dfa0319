/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/answer.h"

/* What is one instruction; all else does not compile. */
void dp_answer_value(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, const struct dp_expr *e)
{
	(void)rt;
	if (e->kind == DP_EXPR_CONST)
		dp_asm_mov_const(a, e->value, DP_RAX);
	else if (e->kind == DP_EXPR_REG)
		dp_view_load(a, view, e->reg, e->shift, e->size, DP_RAX);
	else if (e->kind == DP_EXPR_FACT && e->value == DP_FACT_DURATION && view->duration)
		dp_asm_mov_load(a, 8, dp_rm_mem(view->base, view->duration + view->pushed), DP_RAX);
	else
		a->failed = true;
}

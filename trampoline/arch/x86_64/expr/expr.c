/* SPDX-License-Identifier: MIT */
/*
 * Two mutually recursive generators. dp_expr_jump() compiles an expression for its truth: comparisons and logic become jumps, and
 * a comparison of a register with a constant is one instruction on the live register. dp_expr_value() (expr_value.c) compiles it
 * for its value, into rax; a binary operator has its right side in rcx, and intermediate values are pushed. The side that needs
 * more pushes goes first (Sethi and Ullman), so that their number grows with the logarithm of the expression. A failure fails the
 * whole expression, and there are no side effects, so the order of evaluation is free but for && || and ?:.
 *
 * A load that faults leaves in the middle, with words on the stack. There is one exit for each number of words, each falling
 * through to the next, so that a failure pops exactly those.
 */
#include "trampoline/arch/x86_64/expr/expr_code.h"

/* ---- exits ---------------------------------------------------------------------------------------------------------- */

void dp_exits_init(struct dp_asm *a, const struct dp_expr *e, struct dp_exits *ret)
{
	*ret = (struct dp_exits){0};
	if (!dp_expr_may_fail(e))
		return;
	unsigned pushes = dp_code_pushes(e);
	ret->n = (uint8_t)((pushes < DP_EXPR_PUSHES ? pushes : DP_EXPR_PUSHES) + 1);
	for (unsigned i = 0; i < ret->n; i++)
		ret->at[i] = dp_asm_label(a);
}

void dp_exits_put(struct dp_asm *a, const struct dp_exits *exits)
{
	for (unsigned i = exits->n; i-- > 0;) {
		dp_asm_bind(a, exits->at[i]);
		if (i > 0)
			dp_asm_lea(a, dp_rm_mem(DP_RSP, 8), DP_RSP);
	}
}

/* ---- truth ---------------------------------------------------------------------------------------------------------- */

static bool is_constant(const struct dp_expr *e, uint64_t wanted)
{
	uint64_t k;
	return dp_expr_constant(e, &k) && k == wanted;
}

/* The side of `e == 0` or `e != 0` that is not the constant, or NULL. */
static const struct dp_expr *against_zero(const struct dp_expr *e)
{
	if (e->kind != DP_EXPR_BINARY || (e->op != DP_OP_EQ && e->op != DP_OP_NE))
		return NULL;
	return is_constant(e->b, 0) ? e->a : is_constant(e->a, 0) ? e->b : NULL;
}

bool dp_expr_is_light(const struct dp_expr *e)
{
	uint64_t unused;
	struct dp_leaf leaf;
	if (dp_expr_constant(e, &unused) || dp_expr_leaf(e, &leaf))
		return true;
	if (against_zero(e))
		return dp_expr_is_light(against_zero(e));
	if (e->kind == DP_EXPR_UNARY)
		return e->op == DP_OP_NOT && dp_expr_is_light(e->a);
	return e->kind == DP_EXPR_BINARY && dp_expr_is_logic(e->op) && dp_expr_is_light(e->a) && dp_expr_is_light(e->b);
}

/* a && b, or with `either` a || b. */
static void jump_logic(struct dp_expr_code *c, const struct dp_expr *e, bool sense, struct dp_label to)
{
	bool either = e->op == DP_OP_LOR;
	if (sense == either) { /* one side is enough to jump */
		dp_expr_jump(c, e->a, sense, to);
		dp_expr_jump(c, e->b, sense, to);
		return;
	}
	struct dp_label stay = dp_asm_label(c->a);
	dp_expr_jump(c, e->a, !sense, stay);
	dp_expr_jump(c, e->b, sense, to);
	dp_asm_bind(c->a, stay);
}

void dp_expr_jump(struct dp_expr_code *c, const struct dp_expr *e, bool sense, struct dp_label to)
{
	uint64_t k;
	if (dp_expr_constant(e, &k)) {
		if (!!k == sense)
			dp_asm_jmp(c->a, to);
	} else if (against_zero(e)) {
		dp_expr_jump(c, against_zero(e), sense == (e->op == DP_OP_NE), to);
	} else if (e->kind == DP_EXPR_UNARY && e->op == DP_OP_NOT) {
		dp_expr_jump(c, e->a, !sense, to);
	} else if (e->kind == DP_EXPR_BINARY && dp_expr_is_logic(e->op)) {
		jump_logic(c, e, sense, to);
	} else if (e->kind == DP_EXPR_MATCH) {
		dp_code_match(c, e, sense, to);
	} else {
		enum dp_cc cc = dp_code_compare(c, e);
		dp_asm_jcc(c->a, sense ? cc : cc ^ 1u, to);
	}
}

/* ---- resources --------------------------------------------------------------------------------------------------------- */

unsigned dp_expr_guards(const struct dp_expr *e)
{
	unsigned own = 0;
	if (!e)
		return 0;
	if (e->kind == DP_EXPR_LOAD)
		own = 1;
	else if (e->kind == DP_EXPR_MATCH)
		own = dp_code_match_guards(e);
	return own + dp_expr_guards(e->a) + dp_expr_guards(e->b) + dp_expr_guards(e->c);
}

bool dp_expr_asks_for(const struct dp_expr *e, enum dp_fact fact)
{
	if (!e)
		return false;
	if (e->kind == DP_EXPR_FACT && e->value == fact)
		return true;
	return dp_expr_asks_for(e->a, fact) || dp_expr_asks_for(e->b, fact) || dp_expr_asks_for(e->c, fact);
}

/* Compiles the expression to a scratch buffer. */
enum dp_view_level dp_expr_level(const struct dp_runtime *rt, const struct dp_expr *e)
{
	struct dp_buf out;
	struct dp_asm a;
	struct dp_expr_code c = {.a = &a, .rt = rt, .view = dp_view_full(0)};
	if (dp_expr_is_light(e))
		return DP_VIEW_LIGHT;
	dp_buf_init(&out);
	dp_asm_init(&a, &out, 0);
	dp_exits_init(&a, e, &c.exits);
	dp_expr_jump(&c, e, true, dp_asm_label(&a));
	dp_buf_fini(&out);
	return c.changed & 1u << DP_RDX ? DP_VIEW_RDX : c.changed & 1u << DP_RCX ? DP_VIEW_RCX : DP_VIEW_RAX;
}

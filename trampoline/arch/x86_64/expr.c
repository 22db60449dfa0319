/* SPDX-License-Identifier: MIT */
/*
 * Two mutually recursive generators. jump() compiles an expression for its truth: comparisons and logic become jumps, and a
 * comparison of a register with a constant is one instruction on the live register. value() compiles it for its value, into rax;
 * a binary operator takes its right side in rcx, and what has to wait is pushed. The side that needs more pushes goes first
 * (Sethi and Ullman), so that their number grows with the logarithm of the expression. Nothing here has side effects or can
 * fault, hence the order of evaluation is free.
 */
#include "trampoline/arch/x86_64/expr.h"
#include "trampoline/arch/x86_64/expr_leaf.h"

struct code {
	struct dp_asm *a;
	struct dp_view view; /* view.pushed follows the pushes */
};

static void jump(struct code *c, const struct dp_expr *e, bool sense, struct dp_label to);
static void value(struct code *c, const struct dp_expr *e);

/* ---- values --------------------------------------------------------------------------------------------------------- */

static bool is_simple(const struct dp_expr *e)
{
	uint64_t unused;
	return e->kind == DP_EXPR_REG || dp_expr_constant(e, &unused);
}

/* How many words lie on the stack at most while value(e) runs. */
static unsigned pushes(const struct dp_expr *e)
{
	if (e->kind == DP_EXPR_UNARY)
		return pushes(e->a);
	if (e->kind != DP_EXPR_BINARY || is_simple(e))
		return 0;
	unsigned a = pushes(e->a), b = pushes(e->b);
	if (dp_expr_is_logic(e->op))
		return a > b ? a : b;
	if (is_simple(e->b))
		return a;
	return a == b ? a + 1 : a > b ? a : b;
}

/* Without using rax. */
static void simple_into(struct code *c, const struct dp_expr *e, unsigned reg)
{
	uint64_t k = 0;
	if (dp_expr_constant(e, &k))
		dp_asm_mov_const(c->a, k, reg);
	else
		dp_view_load(c->a, &c->view, e->reg, e->shift, e->size, reg);
}

static void push_value(struct code *c, const struct dp_expr *e)
{
	value(c, e);
	dp_asm_push(c->a, DP_RAX);
	c->view.pushed = (uint8_t)(c->view.pushed + 8);
	if (c->view.pushed > 8 * DP_EXPR_PUSHES)
		c->a->failed = true;
}

static void pop(struct code *c, unsigned reg)
{
	dp_asm_pop(c->a, reg);
	c->view.pushed = (uint8_t)(c->view.pushed - 8);
}

/* Leaves the value of e->a in rax, that of e->b in rcx. */
static void operands(struct code *c, const struct dp_expr *e)
{
	if (is_simple(e->b)) {
		value(c, e->a);
		simple_into(c, e->b, DP_RCX);
	} else if (pushes(e->b) > pushes(e->a)) {
		push_value(c, e->b);
		value(c, e->a);
		pop(c, DP_RCX);
	} else {
		push_value(c, e->a);
		value(c, e->b);
		dp_asm_mov_store(c->a, 8, DP_RAX, dp_rm_reg(DP_RCX));
		pop(c, DP_RAX);
	}
}

static void boolean(struct code *c, const struct dp_expr *e)
{
	struct dp_label no = dp_asm_label(c->a), end = dp_asm_label(c->a);
	jump(c, e, false, no);
	dp_asm_mov_const(c->a, 1, DP_RAX);
	dp_asm_jmp(c->a, end);
	dp_asm_bind(c->a, no);
	dp_asm_mov_const(c->a, 0, DP_RAX);
	dp_asm_bind(c->a, end);
}

/* op $k,%rax, where such an instruction exists. */
static bool arithmetic_imm(struct code *c, const struct dp_expr *e)
{
	uint64_t k;
	bool shift = e->op == DP_OP_SHL || e->op == DP_OP_SHR;
	if (!dp_expr_constant(e->b, &k) || (!shift && (int64_t)k != (int32_t)k))
		return false;
	value(c, e->a);
	if (shift)
		dp_asm_shift(c->a, e->op == DP_OP_SHL ? DP_SHIFT_SHL : DP_SHIFT_SAR, k & 63, DP_RAX);
	else if (e->op == DP_OP_MUL)
		dp_asm_imul_imm(c->a, (int32_t)k, dp_rm_reg(DP_RAX), DP_RAX);
	else
		dp_asm_alu_imm(c->a, dp_expr_alu(e->op), 8, (int32_t)k, dp_rm_reg(DP_RAX));
	return true;
}

static void arithmetic(struct code *c, const struct dp_expr *e)
{
	if (arithmetic_imm(c, e))
		return;
	operands(c, e);
	if (e->op == DP_OP_SHL || e->op == DP_OP_SHR)
		dp_asm_shift_cl(c->a, e->op == DP_OP_SHL ? DP_SHIFT_SHL : DP_SHIFT_SAR, DP_RAX);
	else if (e->op == DP_OP_MUL)
		dp_asm_imul(c->a, dp_rm_reg(DP_RCX), DP_RAX);
	else
		dp_asm_alu_store(c->a, dp_expr_alu(e->op), 8, DP_RCX, dp_rm_reg(DP_RAX));
}

static void value(struct code *c, const struct dp_expr *e)
{
	if (is_simple(e)) {
		simple_into(c, e, DP_RAX);
	} else if (e->kind == DP_EXPR_RFLAGS) {
		dp_view_load_rflags(c->a, &c->view);
	} else if (dp_expr_is_logic(e->op) || dp_expr_is_compare(e->op)) {
		boolean(c, e);
	} else if (e->kind == DP_EXPR_UNARY) {
		value(c, e->a);
		dp_asm_unary(c->a, e->op == DP_OP_NEG ? DP_UNARY_NEG : DP_UNARY_NOT, DP_RAX);
	} else {
		arithmetic(c, e);
	}
}

/* ---- truth ---------------------------------------------------------------------------------------------------------- */

static bool is_constant(const struct dp_expr *e, uint64_t wanted)
{
	uint64_t k;
	return dp_expr_constant(e, &k) && k == wanted;
}

/* The side of `e == 0` or `e != 0` that decides, or NULL. */
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

/* cmp or test; returns the condition code of "true". */
static enum dp_cc compare(struct code *c, const struct dp_expr *e)
{
	struct dp_leaf leaf;
	if (dp_expr_leaf(e, &leaf))
		return dp_leaf_emit(c->a, &c->view, &leaf);
	if (e->kind == DP_EXPR_BINARY && dp_expr_is_compare(e->op)) {
		operands(c, e);
		dp_asm_alu_store(c->a, DP_ALU_CMP, 8, DP_RCX, dp_rm_reg(DP_RAX));
		return dp_expr_cc(e->op);
	}
	value(c, e);
	dp_asm_test(c->a, 8, DP_RAX, dp_rm_reg(DP_RAX));
	return DP_CC_NE;
}

/* a && b, or with `either` a || b. */
static void jump_logic(struct code *c, const struct dp_expr *e, bool sense, struct dp_label to)
{
	bool either = e->op == DP_OP_LOR;
	if (sense == either) { /* one side is enough to jump */
		jump(c, e->a, sense, to);
		jump(c, e->b, sense, to);
		return;
	}
	struct dp_label stay = dp_asm_label(c->a);
	jump(c, e->a, !sense, stay);
	jump(c, e->b, sense, to);
	dp_asm_bind(c->a, stay);
}

static void jump(struct code *c, const struct dp_expr *e, bool sense, struct dp_label to)
{
	uint64_t k;
	if (dp_expr_constant(e, &k)) {
		if (!!k == sense)
			dp_asm_jmp(c->a, to);
	} else if (against_zero(e)) {
		jump(c, against_zero(e), sense == (e->op == DP_OP_NE), to);
	} else if (e->kind == DP_EXPR_UNARY && e->op == DP_OP_NOT) {
		jump(c, e->a, !sense, to);
	} else if (e->kind == DP_EXPR_BINARY && dp_expr_is_logic(e->op)) {
		jump_logic(c, e, sense, to);
	} else {
		enum dp_cc cc = compare(c, e);
		dp_asm_jcc(c->a, sense ? cc : cc ^ 1u, to);
	}
}

void dp_expr_jump(struct dp_asm *a, const struct dp_view *view, const struct dp_expr *e, bool sense, struct dp_label to)
{
	struct code c = {.a = a, .view = *view};
	jump(&c, e, sense, to);
}

/* SPDX-License-Identifier: MIT */
/* Computes values in rax. See expr.c. */
#include "trampoline/arch/x86_64/expr/expr_code.h"

/* ---- registers and the stack ---------------------------------------------------------------------------------------- */

void dp_code_claim(struct dp_expr_code *c, unsigned reg)
{
	c->changed |= (uint16_t)(1u << reg);
	if (!dp_view_is_saved(&c->view, reg))
		c->a->failed = true;
}

struct dp_label dp_code_failure(struct dp_expr_code *c)
{
	if (c->words >= c->exits.n) {
		c->a->failed = true;
		return (struct dp_label){0};
	}
	return c->exits.at[c->words];
}

static void count_words(struct dp_expr_code *c, int more)
{
	c->words = (uint8_t)(c->words + more);
	if (c->view.base == DP_RSP)
		c->view.pushed = (uint8_t)(c->view.pushed + 8 * more);
	if (c->words > DP_EXPR_PUSHES)
		c->a->failed = true;
}

void dp_code_push(struct dp_expr_code *c, const struct dp_expr *e)
{
	dp_expr_value(c, e);
	dp_asm_push(c->a, DP_RAX);
	count_words(c, 1);
}

void dp_code_drop(struct dp_expr_code *c, unsigned words)
{
	dp_asm_lea(c->a, dp_rm_mem(DP_RSP, 8 * (int64_t)words), DP_RSP);
	count_words(c, -(int)words);
}

static void pop(struct dp_expr_code *c, unsigned reg)
{
	dp_asm_pop(c->a, reg);
	count_words(c, -1);
}

/* ---- operands ------------------------------------------------------------------------------------------------------- */

static bool is_simple(const struct dp_expr *e)
{
	struct dp_part part;
	uint64_t unused;
	return dp_expr_part(e, &part) || dp_expr_constant(e, &unused);
}

static unsigned most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* The maximum of words on the stack while value(e) runs. */
unsigned dp_code_pushes(const struct dp_expr *e)
{
	if (is_simple(e))
		return 0;
	switch (e->kind) {
	case DP_EXPR_UNARY:
	case DP_EXPR_CAST:
	case DP_EXPR_LOAD:
		return dp_code_pushes(e->a);
	case DP_EXPR_MATCH:
		return e->b ? most(2, most(dp_code_pushes(e->b), 1 + dp_code_pushes(e->a))) : dp_code_pushes(e->a);
	case DP_EXPR_COND:
		return most(dp_code_pushes(e->c), most(dp_code_pushes(e->a), dp_code_pushes(e->b)));
	case DP_EXPR_BINARY:
		break;
	default:
		return 0;
	}
	unsigned a = dp_code_pushes(e->a), b = dp_code_pushes(e->b);
	if (dp_expr_is_logic(e->op))
		return most(a, b);
	if (is_simple(e->b))
		return a;
	return a == b ? a + 1 : most(a, b);
}

/* movsx from ah..bh to 64 bits does not exist. */
static void load_part(struct dp_expr_code *c, const struct dp_part *part, unsigned to)
{
	struct dp_rm from = dp_rm_reg(to);
	if (!part->is_signed || part->reg == DP_RSP || part->shift)
		dp_view_load(c->a, &c->view, part->reg, part->shift, part->size, to);
	else
		from = dp_view_operand(&c->view, part->reg, 0);
	if (part->is_signed)
		dp_asm_mov_sx(c->a, part->size, from, to);
}

static void simple_into(struct dp_expr_code *c, const struct dp_expr *e, unsigned reg)
{
	struct dp_part part;
	uint64_t k = 0;
	dp_code_claim(c, reg);
	if (dp_expr_part(e, &part))
		load_part(c, &part, reg);
	else if (dp_expr_constant(e, &k))
		dp_asm_mov_const(c->a, k, reg);
}

/* Leaves the value of e->a in rax, that of e->b in rcx. */
static void operands(struct dp_expr_code *c, const struct dp_expr *e)
{
	dp_code_claim(c, DP_RCX);
	if (is_simple(e->b)) {
		dp_expr_value(c, e->a);
		simple_into(c, e->b, DP_RCX);
	} else if (dp_code_pushes(e->b) > dp_code_pushes(e->a)) {
		dp_code_push(c, e->b);
		dp_expr_value(c, e->a);
		pop(c, DP_RCX);
	} else {
		dp_code_push(c, e->a);
		dp_expr_value(c, e->b);
		dp_asm_mov_store(c->a, 8, DP_RAX, dp_rm_reg(DP_RCX));
		pop(c, DP_RAX);
	}
}

static bool is_immediate(const struct dp_expr *e, int32_t *ret)
{
	uint64_t k;
	if (!dp_expr_constant(e, &k) || (int64_t)k != (int32_t)k)
		return false;
	*ret = (int32_t)k;
	return true;
}

/* A whole register that can be an instruction's operand. */
static bool is_operand(const struct dp_expr *e, struct dp_part *ret)
{
	return dp_expr_part(e, ret) && ret->size == 8 && ret->reg != DP_RSP;
}

/* ---- arithmetic ----------------------------------------------------------------------------------------------------- */

/* a op b, or b op a if that is equal and shorter. */
static struct dp_expr ordered(const struct dp_expr *e)
{
	struct dp_expr r = *e;
	if (dp_expr_commutes(e->op) && is_simple(e->a) && !is_simple(e->b)) {
		r.a = e->b;
		r.b = e->a;
	}
	return r;
}

static void shift(struct dp_expr_code *c, const struct dp_expr *e)
{
	enum dp_shift op = e->op == DP_OP_SHL ? DP_SHIFT_SHL : e->op == DP_OP_SHR ? DP_SHIFT_SAR : DP_SHIFT_SHR;
	uint64_t k;
	if (dp_expr_constant(e->b, &k)) {
		dp_expr_value(c, e->a);
		dp_asm_shift(c->a, op, k & 63, DP_RAX);
	} else {
		operands(c, e);
		dp_asm_shift_cl(c->a, op, DP_RAX);
	}
}

/* INT64_MIN / -1 would fault, so idiv is not used for -1. */
static void divide_signed(struct dp_expr_code *c, bool remainder)
{
	struct dp_label minus_one = dp_asm_label(c->a), end = dp_asm_label(c->a);
	dp_asm_alu_imm(c->a, DP_ALU_CMP, 8, -1, dp_rm_reg(DP_RCX));
	dp_asm_jcc(c->a, DP_CC_E, minus_one);
	dp_asm_cqo(c->a);
	dp_asm_divide(c->a, true, DP_RCX);
	if (remainder)
		dp_asm_mov_store(c->a, 8, DP_RDX, dp_rm_reg(DP_RAX));
	dp_asm_jmp(c->a, end);
	dp_asm_bind(c->a, minus_one);
	if (remainder)
		dp_asm_mov_const(c->a, 0, DP_RAX);
	else
		dp_asm_unary(c->a, DP_UNARY_NEG, DP_RAX);
	dp_asm_bind(c->a, end);
}

static void divide(struct dp_expr_code *c, const struct dp_expr *e)
{
	bool remainder = e->op == DP_OP_MOD || e->op == DP_OP_UMOD;
	uint64_t k = 0;
	operands(c, e);
	dp_code_claim(c, DP_RDX);
	if (!dp_expr_constant(e->b, &k) || !k) {
		dp_asm_test(c->a, 8, DP_RCX, dp_rm_reg(DP_RCX));
		dp_asm_jcc(c->a, DP_CC_E, dp_code_failure(c));
	}
	if (e->op == DP_OP_DIV || e->op == DP_OP_MOD) {
		divide_signed(c, remainder);
		return;
	}
	dp_asm_mov_const(c->a, 0, DP_RDX);
	dp_asm_divide(c->a, false, DP_RCX);
	if (remainder)
		dp_asm_mov_store(c->a, 8, DP_RDX, dp_rm_reg(DP_RAX));
}

static void arithmetic(struct dp_expr_code *c, const struct dp_expr *unordered)
{
	const struct dp_expr e = ordered(unordered);
	const bool mul = e.op == DP_OP_MUL;
	struct dp_part part;
	int32_t k;
	if (is_immediate(e.b, &k)) {
		dp_expr_value(c, e.a);
		if (mul)
			dp_asm_imul_imm(c->a, k, dp_rm_reg(DP_RAX), DP_RAX);
		else
			dp_asm_alu_imm(c->a, dp_expr_alu(e.op), 8, k, dp_rm_reg(DP_RAX));
		return;
	}
	struct dp_rm right = dp_rm_reg(DP_RCX);
	if (is_operand(e.b, &part)) {
		dp_expr_value(c, e.a);
		right = dp_view_operand(&c->view, part.reg, 0);
	} else {
		operands(c, &e);
	}
	if (mul)
		dp_asm_imul(c->a, right, DP_RAX);
	else
		dp_asm_alu_load(c->a, dp_expr_alu(e.op), 8, right, DP_RAX);
}

static void binary(struct dp_expr_code *c, const struct dp_expr *e)
{
	if (dp_expr_is_shift(e->op)) {
		shift(c, e);
	} else if (dp_expr_is_divide(e->op)) {
		divide(c, e);
	} else if (dp_code_is_float(e->op)) {
		operands(c, e);
		dp_code_float(c, e->op);
	} else {
		arithmetic(c, e);
	}
}

static void unary(struct dp_expr_code *c, const struct dp_expr *e)
{
	dp_expr_value(c, e->a);
	if (e->op == DP_OP_NEG || e->op == DP_OP_COMPL)
		dp_asm_unary(c->a, e->op == DP_OP_NEG ? DP_UNARY_NEG : DP_UNARY_NOT, DP_RAX);
	else
		dp_code_convert(c, e->op);
}

/* ---- all --------------------------------------------------------------------------------------------------------------- */

static bool is_truth(const struct dp_expr *e)
{
	if (e->kind == DP_EXPR_MATCH)
		return true;
	return (e->kind == DP_EXPR_UNARY && e->op == DP_OP_NOT) ||
	       (e->kind == DP_EXPR_BINARY && (dp_expr_is_logic(e->op) || dp_expr_is_compare(e->op)));
}

static void boolean(struct dp_expr_code *c, const struct dp_expr *e)
{
	struct dp_label no = dp_asm_label(c->a), end = dp_asm_label(c->a);
	dp_expr_jump(c, e, false, no);
	dp_asm_mov_const(c->a, 1, DP_RAX);
	dp_asm_jmp(c->a, end);
	dp_asm_bind(c->a, no);
	dp_asm_mov_const(c->a, 0, DP_RAX);
	dp_asm_bind(c->a, end);
}

static void choose(struct dp_expr_code *c, const struct dp_expr *e)
{
	struct dp_label other = dp_asm_label(c->a), end = dp_asm_label(c->a);
	dp_expr_jump(c, e->c, false, other);
	dp_expr_value(c, e->a);
	dp_asm_jmp(c->a, end);
	dp_asm_bind(c->a, other);
	dp_expr_value(c, e->b);
	dp_asm_bind(c->a, end);
}

void dp_code_extend(struct dp_expr_code *c, unsigned size, bool is_signed)
{
	if (size == 8)
		return;
	if (is_signed)
		dp_asm_mov_sx(c->a, size, dp_rm_reg(DP_RAX), DP_RAX);
	else
		dp_asm_mov_zx(c->a, size, dp_rm_reg(DP_RAX), DP_RAX);
}

static void machine_state(struct dp_expr_code *c, const struct dp_expr *e)
{
	if (e->kind == DP_EXPR_RFLAGS) {
		dp_code_claim(c, DP_RDX);
		dp_view_load_rflags(c->a, &c->view);
	} else if (e->kind == DP_EXPR_XMM) {
		dp_asm_mov_xmm(c->a, e->size, e->reg, DP_RAX);
	} else if (e->kind == DP_EXPR_THREAD) {
		dp_code_thread(c);
	} else {
		dp_code_fact(c, (enum dp_fact)e->value);
	}
}

void dp_expr_value(struct dp_expr_code *c, const struct dp_expr *e)
{
	dp_code_claim(c, DP_RAX);
	if (is_simple(e)) {
		simple_into(c, e, DP_RAX);
	} else if (is_truth(e)) {
		boolean(c, e);
	} else if (e->kind == DP_EXPR_UNARY) {
		unary(c, e);
	} else if (e->kind == DP_EXPR_BINARY) {
		binary(c, e);
	} else if (e->kind == DP_EXPR_LOAD) {
		dp_code_load(c, e);
	} else if (e->kind == DP_EXPR_CAST) {
		dp_expr_value(c, e->a);
		dp_code_extend(c, e->size, e->is_signed);
	} else if (e->kind == DP_EXPR_COND) {
		choose(c, e);
	} else {
		machine_state(c, e);
	}
}

/* ---- comparisons ---------------------------------------------------------------------------------------------------- */

static enum dp_cc compare_integers(struct dp_expr_code *c, const struct dp_expr *e)
{
	enum dp_cc cc = dp_expr_cc(e->op);
	struct dp_part part;
	int32_t k;
	if (is_immediate(e->b, &k)) {
		dp_expr_value(c, e->a);
		dp_asm_alu_imm(c->a, DP_ALU_CMP, 8, k, dp_rm_reg(DP_RAX));
	} else if (is_immediate(e->a, &k)) {
		dp_expr_value(c, e->b);
		dp_asm_alu_imm(c->a, DP_ALU_CMP, 8, k, dp_rm_reg(DP_RAX));
		cc = dp_expr_cc(dp_expr_mirrored(e->op));
	} else if (is_operand(e->b, &part)) {
		dp_expr_value(c, e->a);
		dp_asm_alu_load(c->a, DP_ALU_CMP, 8, dp_view_operand(&c->view, part.reg, 0), DP_RAX);
	} else {
		operands(c, e);
		dp_asm_alu_store(c->a, DP_ALU_CMP, 8, DP_RCX, dp_rm_reg(DP_RAX));
	}
	return cc;
}

enum dp_cc dp_code_compare(struct dp_expr_code *c, const struct dp_expr *e)
{
	struct dp_leaf leaf;
	if (dp_expr_leaf(e, &leaf))
		return dp_leaf_emit(c->a, &c->view, &leaf);
	if (e->kind == DP_EXPR_BINARY && dp_expr_is_compare(e->op))
		return compare_integers(c, e);
	dp_expr_value(c, e);
	dp_asm_test(c->a, 8, DP_RAX, dp_rm_reg(DP_RAX));
	return DP_CC_NE;
}

/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/expr_leaf.h"

/* ---- operators ------------------------------------------------------------------------------------------------------ */

static uint64_t apply_compare(enum dp_expr_op op, uint64_t a, uint64_t b)
{
	int64_t x = (int64_t)a, y = (int64_t)b;
	bool less = op >= DP_OP_ULT ? a < b : x < y;
	switch (op) {
	case DP_OP_EQ:
		return a == b;
	case DP_OP_NE:
		return a != b;
	case DP_OP_LT:
	case DP_OP_ULT:
		return less;
	case DP_OP_LE:
	case DP_OP_ULE:
		return less || a == b;
	case DP_OP_GT:
	case DP_OP_UGT:
		return !less && a != b;
	default:
		return !less;
	}
}

static uint64_t apply(enum dp_expr_op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case DP_OP_MUL:
		return a * b;
	case DP_OP_ADD:
		return a + b;
	case DP_OP_SUB:
		return a - b;
	case DP_OP_SHL:
		return a << (b & 63);
	case DP_OP_SHR:
		return (uint64_t)((int64_t)a >> (b & 63));
	case DP_OP_AND:
		return a & b;
	case DP_OP_XOR:
		return a ^ b;
	case DP_OP_OR:
		return a | b;
	case DP_OP_LAND:
		return a && b;
	case DP_OP_LOR:
		return a || b;
	default:
		return apply_compare(op, a, b);
	}
}

bool dp_expr_constant(const struct dp_expr *e, uint64_t *ret)
{
	uint64_t a = 0, b = 0;
	if (e->kind == DP_EXPR_CONST) {
		*ret = e->value;
		return true;
	}
	if (e->kind == DP_EXPR_UNARY && dp_expr_constant(e->a, &a)) {
		*ret = e->op == DP_OP_NOT ? !a : e->op == DP_OP_NEG ? 0 - a : ~a;
		return true;
	}
	if (e->kind != DP_EXPR_BINARY || !dp_expr_constant(e->a, &a) || !dp_expr_constant(e->b, &b))
		return false;
	*ret = apply(e->op, a, b);
	return true;
}

bool dp_expr_is_compare(enum dp_expr_op op)
{
	return op >= DP_OP_EQ && op <= DP_OP_UGE;
}

bool dp_expr_is_logic(enum dp_expr_op op)
{
	return op == DP_OP_NOT || op == DP_OP_LAND || op == DP_OP_LOR;
}

enum dp_cc dp_expr_cc(enum dp_expr_op op)
{
	static const uint8_t cc[] = {DP_CC_E,  DP_CC_NE, DP_CC_L,  DP_CC_LE, DP_CC_G,
	                             DP_CC_GE, DP_CC_B,  DP_CC_BE, DP_CC_A,  DP_CC_AE};
	return cc[op - DP_OP_EQ];
}

enum dp_alu dp_expr_alu(enum dp_expr_op op)
{
	switch (op) {
	case DP_OP_ADD:
		return DP_ALU_ADD;
	case DP_OP_SUB:
		return DP_ALU_SUB;
	case DP_OP_AND:
		return DP_ALU_AND;
	case DP_OP_XOR:
		return DP_ALU_XOR;
	default:
		return DP_ALU_OR;
	}
}

/* The operator with its sides exchanged. */
static enum dp_expr_op mirrored(enum dp_expr_op op)
{
	static const uint8_t mirror[] = {DP_OP_EQ, DP_OP_NE,  DP_OP_GT,  DP_OP_GE,  DP_OP_LT,
	                                 DP_OP_LE, DP_OP_UGT, DP_OP_UGE, DP_OP_ULT, DP_OP_ULE};
	return (enum dp_expr_op)mirror[op - DP_OP_EQ];
}

/* Narrow registers are zero-extended: they compare as unsigned numbers of their own width. */
static enum dp_expr_op as_unsigned(enum dp_expr_op op)
{
	return op >= DP_OP_LT && op <= DP_OP_GE ? op + (DP_OP_ULT - DP_OP_LT) : op;
}

/* ---- leaves --------------------------------------------------------------------------------------------------------- */

/* rsp has to be computed, so it is none. */
static bool is_plain(const struct dp_expr *e)
{
	return e->kind == DP_EXPR_REG && e->reg != DP_RSP;
}

static bool fits(uint64_t k, unsigned size)
{
	return size == 8 ? (int64_t)k == (int32_t)k : k < UINT64_C(1) << 8 * size;
}

static bool leaf_compare(const struct dp_expr *e, struct dp_leaf *ret)
{
	const struct dp_expr *a = e->a, *b = e->b;
	enum dp_expr_op op = e->op;
	uint64_t k;
	if (!is_plain(a)) {
		a = e->b;
		b = e->a;
		op = mirrored(op);
	}
	if (!is_plain(a))
		return false;
	if (dp_expr_constant(b, &k) && fits(k, a->size)) {
		op = a->size < 8 ? as_unsigned(op) : op;
		*ret = (struct dp_leaf){.kind = DP_LEAF_CMP_IMM, .reg = a, .imm = (int32_t)k, .cc = dp_expr_cc(op)};
		return true;
	}
	if (!is_plain(b) || a->size != 8 || b->size != 8 || a->reg == b->reg)
		return false;
	*ret = (struct dp_leaf){.kind = DP_LEAF_CMP_REG, .reg = a, .other = b, .cc = dp_expr_cc(op)};
	return true;
}

/* The truth of register & constant. */
static bool leaf_test(const struct dp_expr *e, struct dp_leaf *ret)
{
	const struct dp_expr *reg = is_plain(e->a) ? e->a : e->b, *mask = reg == e->a ? e->b : e->a;
	uint64_t k;
	if (!is_plain(reg) || !dp_expr_constant(mask, &k))
		return false;
	if (reg->size < 8)
		k &= (UINT64_C(1) << 8 * reg->size) - 1;
	if (!fits(k, reg->size))
		return false;
	*ret = (struct dp_leaf){.kind = DP_LEAF_TEST_IMM, .reg = reg, .imm = (int32_t)k, .cc = DP_CC_NE};
	return true;
}

bool dp_expr_leaf(const struct dp_expr *e, struct dp_leaf *ret)
{
	if (is_plain(e)) {
		*ret = (struct dp_leaf){.kind = DP_LEAF_CMP_IMM, .reg = e, .cc = DP_CC_NE};
		return true;
	}
	if (e->kind != DP_EXPR_BINARY)
		return false;
	return dp_expr_is_compare(e->op) ? leaf_compare(e, ret) : e->op == DP_OP_AND && leaf_test(e, ret);
}

static void emit_cmp_reg(struct dp_asm *a, const struct dp_view *view, const struct dp_leaf *leaf)
{
	struct dp_rm left = dp_view_operand(view, leaf->reg->reg, 0), right = dp_view_operand(view, leaf->other->reg, 0);
	if (left.memory && right.memory) {
		dp_asm_mov_load(a, 8, left, DP_RAX);
		left = dp_rm_reg(DP_RAX);
	}
	if (right.memory)
		dp_asm_alu_load(a, DP_ALU_CMP, 8, right, left.reg);
	else
		dp_asm_alu_store(a, DP_ALU_CMP, 8, right.reg, left);
}

enum dp_cc dp_leaf_emit(struct dp_asm *a, const struct dp_view *view, const struct dp_leaf *leaf)
{
	struct dp_rm reg = dp_view_operand(view, leaf->reg->reg, leaf->reg->shift);
	if (leaf->kind == DP_LEAF_CMP_REG)
		emit_cmp_reg(a, view, leaf);
	else if (leaf->kind == DP_LEAF_TEST_IMM)
		dp_asm_test_imm(a, leaf->reg->size, leaf->imm, reg);
	else
		dp_asm_alu_imm(a, DP_ALU_CMP, leaf->reg->size, leaf->imm, reg);
	return leaf->cc;
}

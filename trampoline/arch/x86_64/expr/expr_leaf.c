/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/expr/expr_leaf.h"

/* ---- operators ------------------------------------------------------------------------------------------------------ */

static bool is_known(const struct dp_expr *e)
{
	switch (e->kind) {
	case DP_EXPR_CONST:
		return true;
	case DP_EXPR_UNARY:
	case DP_EXPR_CAST:
		return is_known(e->a);
	case DP_EXPR_BINARY:
		return is_known(e->a) && is_known(e->b);
	case DP_EXPR_COND:
		return is_known(e->a) && is_known(e->b) && is_known(e->c);
	default:
		return false;
	}
}

/* A constant division by 0 is not a constant. */
bool dp_expr_constant(const struct dp_expr *e, uint64_t *ret)
{
	static const struct dp_expr_env nothing;
	return is_known(e) && dp_expr_eval_in(e, &nothing, ret);
}

bool dp_expr_is_compare(enum dp_expr_op op)
{
	return op >= DP_OP_EQ && op <= DP_OP_UGE;
}

bool dp_expr_is_logic(enum dp_expr_op op)
{
	return op == DP_OP_NOT || op == DP_OP_LAND || op == DP_OP_LOR;
}

bool dp_expr_is_shift(enum dp_expr_op op)
{
	return op == DP_OP_SHL || op == DP_OP_SHR || op == DP_OP_LSHR;
}

bool dp_expr_is_divide(enum dp_expr_op op)
{
	return op >= DP_OP_DIV && op <= DP_OP_UMOD;
}

bool dp_expr_is_alu(enum dp_expr_op op)
{
	return op == DP_OP_ADD || op == DP_OP_SUB || op == DP_OP_AND || op == DP_OP_XOR || op == DP_OP_OR;
}

bool dp_expr_commutes(enum dp_expr_op op)
{
	return op == DP_OP_MUL || (dp_expr_is_alu(op) && op != DP_OP_SUB);
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

enum dp_expr_op dp_expr_mirrored(enum dp_expr_op op)
{
	static const uint8_t mirror[] = {DP_OP_EQ, DP_OP_NE,  DP_OP_GT,  DP_OP_GE,  DP_OP_LT,
	                                 DP_OP_LE, DP_OP_UGT, DP_OP_UGE, DP_OP_ULT, DP_OP_ULE};
	return (enum dp_expr_op)mirror[op - DP_OP_EQ];
}

/* ---- parts of registers --------------------------------------------------------------------------------------------- */

static bool is_wider(const struct dp_expr *cast, const struct dp_part *part)
{
	return cast->size > part->size;
}

/* A cast of a register is a part of it; a cast to a wider type needs nothing, as the part is zero-extended already. */
bool dp_expr_part(const struct dp_expr *e, struct dp_part *ret)
{
	const struct dp_expr *reg = e->kind == DP_EXPR_CAST ? e->a : e;
	if (reg->kind != DP_EXPR_REG)
		return false;
	*ret = (struct dp_part){.reg = reg->reg, .shift = reg->shift, .size = reg->size};
	if (e->kind == DP_EXPR_CAST && !is_wider(e, ret)) {
		ret->size = e->size;
		ret->is_signed = e->is_signed && e->size < 8;
	}
	return true;
}

/* rsp must be computed, so it does not count. */
static bool is_plain(const struct dp_expr *e, struct dp_part *ret)
{
	return dp_expr_part(e, ret) && ret->reg != DP_RSP;
}

static uint64_t low(uint64_t k, unsigned size)
{
	return size == 8 ? k : k & ((UINT64_C(1) << 8 * size) - 1);
}

/* Whether k is a value that the part can have, and an immediate of its width. */
static bool fits(uint64_t k, const struct dp_part *part)
{
	unsigned unused = 64 - 8u * part->size;
	if (part->size == 8)
		return (int64_t)k == (int32_t)k;
	return k == (part->is_signed ? (uint64_t)((int64_t)(k << unused) >> unused) : low(k, part->size));
}

/* Zero-extended parts compare as unsigned numbers of their own width; sign extension preserves signed and unsigned order. */
static enum dp_expr_op narrowed(enum dp_expr_op op, const struct dp_part *part)
{
	bool becomes_unsigned = part->size < 8 && !part->is_signed && op >= DP_OP_LT && op <= DP_OP_GE;
	return becomes_unsigned ? op + (DP_OP_ULT - DP_OP_LT) : op;
}

/* ---- leaves --------------------------------------------------------------------------------------------------------- */

static bool same_kind(const struct dp_part *a, const struct dp_part *b)
{
	return a->size == b->size && a->is_signed == b->is_signed && !a->shift && !b->shift && a->reg != b->reg;
}

static bool leaf_compare(const struct dp_expr *e, struct dp_leaf *ret)
{
	const struct dp_expr *other = e->b;
	enum dp_expr_op op = e->op;
	struct dp_part a, b;
	uint64_t k;
	if (!is_plain(e->a, &a)) {
		other = e->a;
		op = dp_expr_mirrored(op);
		if (!is_plain(e->b, &a))
			return false;
	}
	op = narrowed(op, &a);
	if (dp_expr_constant(other, &k) && fits(k, &a)) {
		*ret = (struct dp_leaf){.kind = DP_LEAF_CMP_IMM, .part = a, .imm = (int32_t)k, .cc = dp_expr_cc(op)};
		return true;
	}
	if (!is_plain(other, &b) || !same_kind(&a, &b))
		return false;
	*ret = (struct dp_leaf){.kind = DP_LEAF_CMP_REG, .part = a, .other = b, .cc = dp_expr_cc(op)};
	return true;
}

/* The truth of register & constant. */
static bool leaf_test(const struct dp_expr *e, struct dp_leaf *ret)
{
	struct dp_part part;
	const struct dp_expr *mask = is_plain(e->a, &part) ? e->b : e->a;
	uint64_t k;
	if ((mask == e->a && !is_plain(e->b, &part)) || !dp_expr_constant(mask, &k))
		return false;
	if (!part.is_signed)
		k = low(k, part.size);
	if (!fits(k, &part))
		return false;
	*ret = (struct dp_leaf){.kind = DP_LEAF_TEST_IMM, .part = part, .imm = (int32_t)k, .cc = DP_CC_NE};
	return true;
}

bool dp_expr_leaf(const struct dp_expr *e, struct dp_leaf *ret)
{
	struct dp_part part;
	if (is_plain(e, &part)) {
		*ret = (struct dp_leaf){.kind = DP_LEAF_CMP_IMM, .part = part, .cc = DP_CC_NE};
		return true;
	}
	if (e->kind != DP_EXPR_BINARY)
		return false;
	return dp_expr_is_compare(e->op) ? leaf_compare(e, ret) : e->op == DP_OP_AND && leaf_test(e, ret);
}

static void emit_cmp_reg(struct dp_asm *a, const struct dp_view *view, const struct dp_leaf *leaf)
{
	struct dp_rm left = dp_view_operand(view, leaf->part.reg, 0), right = dp_view_operand(view, leaf->other.reg, 0);
	if (left.memory && right.memory) {
		dp_asm_mov_load(a, 8, left, DP_RAX);
		left = dp_rm_reg(DP_RAX);
	}
	if (right.memory)
		dp_asm_alu_load(a, DP_ALU_CMP, leaf->part.size, right, left.reg);
	else
		dp_asm_alu_store(a, DP_ALU_CMP, leaf->part.size, right.reg, left);
}

enum dp_cc dp_leaf_emit(struct dp_asm *a, const struct dp_view *view, const struct dp_leaf *leaf)
{
	struct dp_rm reg = dp_view_operand(view, leaf->part.reg, leaf->part.shift);
	if (leaf->kind == DP_LEAF_CMP_REG)
		emit_cmp_reg(a, view, leaf);
	else if (leaf->kind == DP_LEAF_TEST_IMM)
		dp_asm_test_imm(a, leaf->part.size, leaf->imm, reg);
	else
		dp_asm_alu_imm(a, DP_ALU_CMP, leaf->part.size, leaf->imm, reg);
	return leaf->cc;
}

/* SPDX-License-Identifier: MIT */
/* Evaluates the operators of expressions. */
#include "probes/record/expr_internal.h"

#include <string.h>

static double to_double(uint64_t bits)
{
	double f;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint64_t bits_of(double f)
{
	uint64_t bits;
	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* As the processor does: out of range gives INT64_MIN. */
static uint64_t integer_of(double f)
{
	return f >= -0x1p63 && f < 0x1p63 ? (uint64_t)(int64_t)f : UINT64_C(1) << 63;
}

/* 2^63 and more: subtract 2^63, convert, add it again. 2^64 and more give 0. */
static uint64_t unsigned_of(double f)
{
	return f >= 0x1p63 ? integer_of(f - 0x1p63) ^ UINT64_C(1) << 63 : integer_of(f);
}

static uint64_t widen(uint64_t a)
{
	uint32_t low = (uint32_t)a;
	float f;
	memcpy(&f, &low, sizeof(f));
	return bits_of((double)f);
}

static uint64_t float_bits(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static uint64_t narrow(uint64_t a)
{
	return float_bits((float)to_double(a));
}

static uint64_t apply_unary(enum dp_expr_op op, uint64_t a)
{
	switch (op) {
	case DP_OP_NOT:
		return !a;
	case DP_OP_COMPL:
		return ~a;
	case DP_OP_NEG:
		return 0 - a;
	case DP_OP_FNEG:
		return a ^ UINT64_C(1) << 63;
	case DP_OP_I2D:
		return bits_of((double)(int64_t)a);
	case DP_OP_U2D:
		return bits_of((double)a);
	case DP_OP_D2I:
		return integer_of(to_double(a));
	case DP_OP_D2U:
		return unsigned_of(to_double(a));
	case DP_OP_I2F:
		return float_bits((float)(int64_t)a);
	case DP_OP_U2F:
		return float_bits((float)a);
	case DP_OP_F2D:
		return widen(a);
	default:
		return narrow(a);
	}
}

static uint64_t apply_float(enum dp_expr_op op, double a, double b)
{
	switch (op) {
	case DP_OP_FADD:
		return bits_of(a + b);
	case DP_OP_FSUB:
		return bits_of(a - b);
	case DP_OP_FMUL:
		return bits_of(a * b);
	case DP_OP_FDIV:
		return bits_of(a / b);
	case DP_OP_FEQ:
		return a == b;
	case DP_OP_FNE:
		return a != b;
	case DP_OP_FLT:
		return a < b;
	case DP_OP_FLE:
		return a <= b;
	case DP_OP_FGT:
		return a > b;
	default:
		return a >= b;
	}
}

static uint64_t apply_division(enum dp_expr_op op, uint64_t a, uint64_t b)
{
	if (b == 0)
		return 0;
	if (op == DP_OP_UDIV)
		return a / b;
	if (op == DP_OP_UMOD)
		return a % b;
	if (b == UINT64_MAX) /* also avoids the one overflow, INT64_MIN / -1 */
		return op == DP_OP_DIV ? 0 - a : 0;
	return (uint64_t)(op == DP_OP_DIV ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
}

static uint64_t apply_compare(enum dp_expr_op op, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;
	switch (op) {
	case DP_OP_EQ:
		return a == b;
	case DP_OP_NE:
		return a != b;
	case DP_OP_LT:
		return sa < sb;
	case DP_OP_LE:
		return sa <= sb;
	case DP_OP_GT:
		return sa > sb;
	case DP_OP_GE:
		return sa >= sb;
	case DP_OP_ULT:
		return a < b;
	case DP_OP_ULE:
		return a <= b;
	case DP_OP_UGT:
		return a > b;
	default:
		return a >= b;
	}
}

static uint64_t apply_integer(enum dp_expr_op op, uint64_t a, uint64_t b)
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
	case DP_OP_LSHR:
		return a >> (b & 63);
	case DP_OP_AND:
		return a & b;
	case DP_OP_XOR:
		return a ^ b;
	case DP_OP_OR:
		return a | b;
	case DP_OP_LAND:
		return a && b;
	default:
		return a || b;
	}
}

uint64_t dp_expr_apply(enum dp_expr_op op, uint64_t a, uint64_t b)
{
	if (dp_expr_is_unary(op))
		return apply_unary(op, a);
	if (op >= DP_OP_FADD)
		return apply_float(op, to_double(a), to_double(b));
	if (dp_expr_divides(op))
		return apply_division(op, a, b);
	if (op >= DP_OP_EQ && op <= DP_OP_UGE)
		return apply_compare(op, a, b);
	return apply_integer(op, a, b);
}

bool dp_expr_divides(enum dp_expr_op op)
{
	return op >= DP_OP_DIV && op <= DP_OP_UMOD;
}

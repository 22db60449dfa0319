/* SPDX-License-Identifier: MIT */
/* The reference interpreter: what a condition means, in the plainest C. The compiled form is tested against it. */
#include "agent/abi.h"
#include "probes/expr_internal.h"

uint64_t dp_expr_apply(enum dp_expr_op op, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;
	switch (op) {
	case DP_OP_NOT:
		return !a;
	case DP_OP_COMPL:
		return ~a;
	case DP_OP_NEG:
		return 0 - a;
	case DP_OP_MUL:
		return a * b;
	case DP_OP_ADD:
		return a + b;
	case DP_OP_SUB:
		return a - b;
	case DP_OP_SHL:
		return a << (b & 63);
	case DP_OP_SHR:
		return (uint64_t)(sa >> (b & 63));
	case DP_OP_AND:
		return a & b;
	case DP_OP_XOR:
		return a ^ b;
	case DP_OP_OR:
		return a | b;
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
	case DP_OP_UGE:
		return a >= b;
	case DP_OP_LAND:
		return a && b;
	case DP_OP_LOR:
		return a || b;
	default:
		return 0;
	}
}

static uint64_t reg_value(const struct dp_expr *e, const struct dp_regs *regs)
{
	uint64_t v = regs->gpr[e->reg & 15] >> e->shift;
	return e->size >= 8 ? v : v & ((UINT64_C(1) << (e->size * 8u)) - 1);
}

static uint64_t binary_value(const struct dp_expr *e, const struct dp_regs *regs)
{
	uint64_t a = dp_expr_eval(e->a, regs);
	if (e->op == DP_OP_LAND && !a)
		return 0;
	if (e->op == DP_OP_LOR && a)
		return 1;
	return dp_expr_apply(e->op, a, dp_expr_eval(e->b, regs));
}

uint64_t dp_expr_eval(const struct dp_expr *expr, const struct dp_regs *regs)
{
	switch (expr->kind) {
	case DP_EXPR_CONST:
		return expr->reg == DP_CONST_RIP ? regs->rip : expr->value;
	case DP_EXPR_REG:
		return reg_value(expr, regs);
	case DP_EXPR_RFLAGS:
		return regs->rflags;
	case DP_EXPR_UNARY:
		return dp_expr_apply(expr->op, dp_expr_eval(expr->a, regs), 0);
	case DP_EXPR_BINARY:
		return binary_value(expr, regs);
	default:
		return 0;
	}
}

void dp_expr_bind(struct dp_expr *expr, dp_addr site)
{
	if (!expr)
		return;
	if (expr->kind == DP_EXPR_CONST && expr->reg == DP_CONST_RIP)
		expr->value = site.v;
	dp_expr_bind(expr->a, site);
	dp_expr_bind(expr->b, site);
}

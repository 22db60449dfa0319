/* SPDX-License-Identifier: MIT */
#include "probes/record/expr_build.h"
#include "probes/record/expr_internal.h"

#include <stdlib.h>
#include <string.h>

struct dp_expr *dp_build(struct dp_arena *a, struct dp_expr node)
{
	struct dp_expr *e = dp_arena_alloc(a, sizeof(*e));
	if (e)
		*e = node;
	return e;
}

struct dp_expr *dp_build_const(struct dp_arena *a, uint64_t value)
{
	return dp_build(a, (struct dp_expr){.kind = DP_EXPR_CONST, .value = value, .reg = DP_CONST_FOLDED});
}

struct dp_expr *dp_build_reg(struct dp_arena *a, uint8_t reg)
{
	return dp_build(a, (struct dp_expr){.kind = DP_EXPR_REG, .reg = reg, .size = 8});
}

bool dp_build_is_const(const struct dp_expr *x, uint64_t *ret)
{
	if (!x || x->kind != DP_EXPR_CONST || x->reg == DP_CONST_RIP)
		return false;
	*ret = x->value;
	return true;
}

static bool is_division(enum dp_expr_op op)
{
	return op == DP_OP_DIV || op == DP_OP_MOD || op == DP_OP_UDIV || op == DP_OP_UMOD;
}

struct dp_expr *dp_build_unary(struct dp_arena *a, enum dp_expr_op op, struct dp_expr *x)
{
	uint64_t v;
	if (!x)
		return NULL;
	if (dp_build_is_const(x, &v))
		return dp_build_const(a, dp_expr_apply(op, v, 0));
	return dp_build(a, (struct dp_expr){.kind = DP_EXPR_UNARY, .op = op, .a = x});
}

struct dp_expr *dp_build_binary(struct dp_arena *a, enum dp_expr_op op, struct dp_expr *x, struct dp_expr *y)
{
	uint64_t u, v, inner;
	if (!x || !y)
		return NULL;
	const bool right = dp_build_is_const(y, &v);
	if (dp_build_is_const(x, &u) && right && !(is_division(op) && !v))
		return dp_build_const(a, dp_expr_apply(op, u, v));
	if (op == DP_OP_SUB && right) {
		op = DP_OP_ADD;
		v = 0 - v;
		y = dp_build_const(a, v);
	}
	if (right && !v && (op == DP_OP_ADD || op == DP_OP_OR || op == DP_OP_SHL || op == DP_OP_SHR || op == DP_OP_LSHR))
		return x;
	if (right && v == 1 && op == DP_OP_MUL)
		return x;
	if (op == DP_OP_ADD && right && x->kind == DP_EXPR_BINARY && x->op == DP_OP_ADD && dp_build_is_const(x->b, &inner))
		return dp_build_binary(a, DP_OP_ADD, x->a, dp_build_const(a, inner + v));
	return dp_build(a, (struct dp_expr){.kind = DP_EXPR_BINARY, .op = op, .a = x, .b = y});
}

struct dp_expr *dp_build_add(struct dp_arena *a, struct dp_expr *x, uint64_t n)
{
	return n ? dp_build_binary(a, DP_OP_ADD, x, dp_build_const(a, n)) : x;
}

struct dp_expr *dp_build_load(struct dp_arena *a, struct dp_expr *addr, uint8_t size, bool is_signed)
{
	return addr ? dp_build(a, (struct dp_expr){.kind = DP_EXPR_LOAD, .a = addr, .size = size, .is_signed = is_signed}) : NULL;
}

struct dp_expr *dp_build_cast(struct dp_arena *a, struct dp_expr *x, uint8_t size, bool is_signed)
{
	uint64_t v;
	if (!x || size >= 8)
		return x;
	if (dp_build_is_const(x, &v))
		return dp_build_const(a, dp_expr_extend(v, size, is_signed));
	/* The value has this form already. */
	if ((x->kind == DP_EXPR_LOAD || x->kind == DP_EXPR_CAST) &&
	    ((x->size == size && x->is_signed == is_signed) || (x->size < size && (!x->is_signed || is_signed))))
		return x;
	if (x->kind == DP_EXPR_CAST && x->size >= size)
		x = x->a;
	return dp_build(a, (struct dp_expr){.kind = DP_EXPR_CAST, .a = x, .size = size, .is_signed = is_signed});
}

static struct dp_error *copy(const struct dp_expr *x, unsigned *nodes, struct dp_expr **ret)
{
	if (++*nodes > DP_EXPR_MAX_NODES)
		return dp_error(DP_TAG_SYNTAX, "the value takes more than %u steps to compute: ask for parts of it",
		                DP_EXPR_MAX_NODES);
	struct dp_expr *e = malloc(sizeof(*e));
	*ret = e;
	if (!e)
		return dp_error_nomem();
	*e = *x;
	e->a = e->b = e->c = NULL;
	e->text = x->text ? strdup(x->text) : NULL;
	if (x->text && !e->text)
		return dp_error_nomem();
	if (x->a)
		DP_TRY(copy(x->a, nodes, &e->a));
	if (x->b)
		DP_TRY(copy(x->b, nodes, &e->b));
	return x->c ? copy(x->c, nodes, &e->c) : NULL;
}

struct dp_error *dp_build_finish(const struct dp_expr *x, struct dp_expr **ret)
{
	struct dp_expr *e = NULL;
	unsigned nodes = 0;
	struct dp_error *err = x ? copy(x, &nodes, &e) : dp_error_nomem();
	if (err)
		dp_expr_destroy(e);
	else
		*ret = e;
	return err;
}

struct dp_expr *dp_expr_destroy(struct dp_expr *expr)
{
	if (!expr)
		return NULL;
	dp_expr_destroy(expr->a);
	dp_expr_destroy(expr->b);
	dp_expr_destroy(expr->c);
	free(expr->text);
	free(expr);
	return NULL;
}

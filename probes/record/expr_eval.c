/* SPDX-License-Identifier: MIT */
/* The reference interpreter, in plain C. It defines what an expression means; the compiled form is tested against it. */
#include "agent/abi.h"
#include "probes/record/expr_internal.h"

#include <string.h>

#define TRY(what)                                                                                                                \
	do {                                                                                                                     \
		if (!(what))                                                                                                     \
			return false;                                                                                            \
	} while (0)

static bool load(const struct dp_expr *e, const struct dp_expr_env *world, uint64_t *ret)
{
	uint64_t addr, v = 0;
	TRY(dp_expr_eval_in(e->a, world, &addr));
	TRY(world->read && world->read(addr, &v, e->size, world->data));
	*ret = dp_expr_extend(v, e->size, e->is_signed);
	return true;
}

static bool binary(const struct dp_expr *e, const struct dp_expr_env *world, uint64_t *ret)
{
	uint64_t a, b;
	TRY(dp_expr_eval_in(e->a, world, &a));
	if ((e->op == DP_OP_LAND && !a) || (e->op == DP_OP_LOR && a)) {
		*ret = e->op == DP_OP_LOR;
		return true;
	}
	TRY(dp_expr_eval_in(e->b, world, &b));
	TRY(!dp_expr_divides(e->op) || b);
	*ret = dp_expr_apply(e->op, a, b);
	return true;
}

static bool unary(const struct dp_expr *e, const struct dp_expr_env *world, uint64_t *ret)
{
	uint64_t a;
	TRY(dp_expr_eval_in(e->a, world, &a));
	*ret = e->kind == DP_EXPR_CAST ? dp_expr_extend(a, e->size, e->is_signed) : dp_expr_apply(e->op, a, 0);
	return true;
}

static bool choose(const struct dp_expr *e, const struct dp_expr_env *world, uint64_t *ret)
{
	uint64_t chosen;
	TRY(dp_expr_eval_in(e->c, world, &chosen));
	return dp_expr_eval_in(chosen ? e->a : e->b, world, ret);
}

struct text { /* a string, read character by character and only as far as needed */
	const struct dp_expr_env *world;
	uint64_t addr, limit; /* it ends at the limit at the latest */
	bool own;             /* in our memory */
};

static bool character(const struct text *t, size_t i, uint8_t *ret)
{
	if (t->own) {
		*ret = ((const uint8_t *)(uintptr_t)t->addr)[i];
		return true;
	}
	return t->world->read && t->world->read(t->addr + i, ret, 1, t->world->data);
}

/* Compares the first `n` characters of the pattern. */
static bool match_start(const struct text *t, const char *pattern, size_t n, uint64_t *ret)
{
	uint8_t ch;
	*ret = 1;
	for (size_t i = 0; i < n && *ret; i++) {
		TRY(character(t, i, &ch));
		*ret = ch == (uint8_t)pattern[i];
	}
	return true;
}

static bool only_stars(const char *pattern)
{
	return !pattern[strspn(pattern, "*")];
}

/* After a mismatch the last star takes one more character. Nothing after the limit is read. */
static bool match_glob(const struct text *t, const char *pattern, uint64_t *ret)
{
	const char *star = NULL;
	size_t i = 0, from = 0;
	uint8_t ch = 0;
	for (*ret = 0;;) {
		if (*pattern == '*') {
			star = pattern++;
			from = i;
			if (only_stars(pattern))
				break;
			continue;
		}
		if (i < t->limit)
			TRY(character(t, i, &ch));
		else
			ch = 0;
		if (!ch && !*pattern)
			break;
		if (ch && (*pattern == '?' || ch == (uint8_t)*pattern)) {
			pattern++;
			i++;
		} else if (ch && star) {
			pattern = star + 1;
			i = ++from;
		} else {
			return true;
		}
	}
	*ret = 1;
	return true;
}

static bool match(const struct dp_expr *e, const struct dp_expr_env *world, uint64_t *ret)
{
	struct text t = {
	        .world = world, .own = e->a->kind == DP_EXPR_FACT && e->a->value == DP_FACT_COMM, .limit = DP_STRING_MAX};
	uint64_t n;
	TRY(dp_expr_eval_in(e->a, world, &t.addr));
	if (e->b) {
		TRY(dp_expr_eval_in(e->b, world, &n));
		t.limit = dp_counted(e->is_signed ? DP_COUNT_SIGNED : DP_COUNT_UNSIGNED, n, DP_STRING_MAX);
	}
	if (e->match == DP_MATCH_GLOB)
		return match_glob(&t, e->text, ret);
	return match_start(&t, e->text, strlen(e->text) + (e->match == DP_MATCH_EQUAL), ret);
}

static uint64_t leaf(const struct dp_expr *e, const struct dp_expr_env *world)
{
	switch (e->kind) {
	case DP_EXPR_CONST:
		return e->reg == DP_CONST_RIP && world->regs ? world->regs->rip : e->value;
	case DP_EXPR_REG:
		return world->regs ? dp_expr_extend(world->regs->gpr[e->reg & 15] >> e->shift, e->size, false) : 0;
	case DP_EXPR_RFLAGS:
		return world->regs ? world->regs->rflags : 0;
	case DP_EXPR_THREAD:
		return world->thread;
	case DP_EXPR_XMM:
		return world->xmm ? dp_expr_extend(world->xmm[e->reg & 15][0], e->size, false) : 0;
	default:
		return 0;
	}
}

bool dp_expr_eval_in(const struct dp_expr *expr, const struct dp_expr_env *world, uint64_t *ret)
{
	switch (expr->kind) {
	case DP_EXPR_UNARY:
	case DP_EXPR_CAST:
		return unary(expr, world, ret);
	case DP_EXPR_BINARY:
		return binary(expr, world, ret);
	case DP_EXPR_LOAD:
		return load(expr, world, ret);
	case DP_EXPR_COND:
		return choose(expr, world, ret);
	case DP_EXPR_MATCH:
		return match(expr, world, ret);
	case DP_EXPR_FACT:
		TRY(world->fact);
		*ret = world->fact((enum dp_fact)expr->value, world->data);
		return true;
	default:
		*ret = leaf(expr, world);
		return true;
	}
}

uint64_t dp_expr_eval(const struct dp_expr *expr, const struct dp_regs *regs)
{
	struct dp_expr_env world = {.regs = regs};
	uint64_t v;
	return dp_expr_eval_in(expr, &world, &v) ? v : 0;
}

static bool divisor_may_be_zero(const struct dp_expr *e)
{
	return dp_expr_divides(e->op) && (e->b->kind != DP_EXPR_CONST || e->b->value == 0);
}

bool dp_expr_may_fail(const struct dp_expr *e)
{
	if (!e)
		return false;
	if (e->kind == DP_EXPR_LOAD || (e->kind == DP_EXPR_BINARY && divisor_may_be_zero(e)))
		return true;
	if (e->kind == DP_EXPR_FACT)
		return e->value == DP_FACT_DURATION;
	if (e->kind == DP_EXPR_MATCH && (e->a->kind != DP_EXPR_FACT || e->a->value != DP_FACT_COMM))
		return true;
	return dp_expr_may_fail(e->a) || dp_expr_may_fail(e->b) || dp_expr_may_fail(e->c);
}

bool dp_expr_reads(const struct dp_expr *e)
{
	if (!e)
		return false;
	if (e->kind == DP_EXPR_LOAD || e->kind == DP_EXPR_MATCH)
		return true;
	return dp_expr_reads(e->a) || dp_expr_reads(e->b) || dp_expr_reads(e->c);
}

void dp_expr_bind(struct dp_expr *expr, dp_addr site)
{
	if (!expr)
		return;
	if (expr->kind == DP_EXPR_CONST && expr->reg == DP_CONST_RIP)
		expr->value = site.v;
	dp_expr_bind(expr->a, site);
	dp_expr_bind(expr->b, site);
	dp_expr_bind(expr->c, site);
}

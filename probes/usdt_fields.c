/* SPDX-License-Identifier: MIT */
/* What a marker's event shows if nothing else was asked for. */
#include "probes/usdt.h"

#include <stdio.h>
#include <stdlib.h>

static struct dp_expr *node(enum dp_expr_kind kind, uint64_t value)
{
	struct dp_expr *e = calloc(1, sizeof(*e));
	if (e) {
		e->kind = kind;
		e->value = value;
	}
	return e;
}

static struct dp_expr *join(enum dp_expr_op op, struct dp_expr *a, struct dp_expr *b)
{
	struct dp_expr *e = a && b ? node(DP_EXPR_BINARY, 0) : NULL;
	if (!e) {
		dp_expr_destroy(a);
		dp_expr_destroy(b);
		return NULL;
	}
	e->op = op;
	e->a = a;
	e->b = b;
	return e;
}

static struct dp_expr *reg(uint8_t number, uint8_t shift, uint8_t size)
{
	struct dp_expr *e = node(DP_EXPR_REG, 0);
	if (e) {
		e->reg = number;
		e->shift = shift;
		e->size = size;
	}
	return e;
}

static struct dp_expr *address_of(const struct dp_usdt_arg *a)
{
	struct dp_expr *e = node(DP_EXPR_CONST, (uint64_t)a->disp);
	if (a->base != DP_USDT_NO_REG)
		e = join(DP_OP_ADD, reg(a->base, 0, 8), e);
	if (a->index != DP_USDT_NO_REG)
		e = join(DP_OP_ADD, e, join(DP_OP_MUL, reg(a->index, 0, 8), node(DP_EXPR_CONST, a->scale)));
	return e;
}

static bool set(struct dp_field *f, const struct dp_usdt_arg *a)
{
	f->type = a->is_signed ? DP_TYPE_INT : DP_TYPE_UINT;
	f->size = a->size;
	switch (a->kind) {
	case DP_USDT_REG:
		f->source = DP_SRC_REG;
		f->reg = a->base;
		f->shift = a->shift;
		return true;
	case DP_USDT_CONST:
		f->source = DP_SRC_EXPR;
		return (f->expr = node(DP_EXPR_CONST, (uint64_t)a->disp));
	default:
		f->source = DP_SRC_MEMORY;
		return (f->expr = address_of(a));
	}
}

struct dp_error *dp_usdt_fields(struct dp_module *m, const struct dp_usdt *marker, struct dp_fields *fields)
{
	struct dp_usdt_arg arg[DP_USDT_MAX_ARGS];
	const size_t n = dp_usdt_args(m, marker, arg);
	for (size_t i = 0; i < n; i++) {
		if (!arg[i].size || arg[i].is_float || arg[i].xmm)
			continue;
		struct dp_field *grown = realloc(fields->field, (fields->n + 1) * sizeof(*grown)), *f;
		fields->field = grown ? grown : fields->field;
		if (grown) {
			f = &grown[fields->n++];
			*f = (struct dp_field){0};
			if (asprintf(&f->name, "arg%zu", i) >= 0 && set(f, &arg[i]))
				continue;
		}
		return dp_error(DP_TAG_NOMEM, "out of memory for the arguments of %s:%s", marker->provider, marker->name);
	}
	return NULL;
}

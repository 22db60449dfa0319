/* SPDX-License-Identifier: MIT */
#include "session/view/eval.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------------------------------------- */

static void take(const struct dp_field *field, const struct dp_field_value *value, void *data)
{
	struct dp_view_values *v = data;
	v->value[field - v->class->fields->field] = *value;
}

bool dp_view_values_of(struct dp_view_values *v, const struct dp_event_class *class, const struct dp_event *event)
{
	const struct dp_fields *fields = class->fields;
	if (v->capacity < fields->n) {
		struct dp_field_value *grown = reallocarray(v->value, fields->n, sizeof(*grown));
		if (!grown)
			return false;
		v->value = grown;
		v->capacity = fields->n;
	}
	v->class = class;
	v->event = event;
	v->n = fields->n;
	return dp_fields_decode(fields, event->payload, event->len, take, v);
}

void dp_view_values_fini(struct dp_view_values *v)
{
	free(v->value);
	*v = (struct dp_view_values){0};
}

/* ---- compiling ------------------------------------------------------------------------------------------------------------- */

struct asked {
	const char *text;
	enum dp_view_use use;
};

static struct dp_error *compile(const struct dp_fields *fields, const struct asked *a, struct dp_expr **ret, bool *is_string)
{
	struct dp_scope *scope = NULL;
	DP_TRY(dp_scope_recorded(fields, &scope));
	struct dp_error *err = a->use == DP_VIEW_KEY         ? dp_scope_key(scope, a->text, ret, is_string)
	                       : a->use == DP_VIEW_CONDITION ? dp_scope_condition(scope, a->text, ret)
	                                                     : dp_scope_expr(scope, a->text, ret);
	dp_scope_destroy(scope);
	return err;
}

static bool is_lack(const struct dp_error *err)
{
	return err->tag == DP_TAG_NO_VARIABLE || err->tag == DP_TAG_NO_VALUE;
}

struct dp_error *dp_view_expr_create(const struct dp_view_source *of, const char *text, enum dp_view_use use,
                                     struct dp_view_expr *ret, size_t *missing)
{
	const struct asked asked = {text, use};
	struct dp_error *first = NULL, *err = NULL;
	size_t compiled = 0;
	size_t strings = 0;
	struct dp_view_expr e = {calloc(of->n + 1, sizeof(*e.expr)), of->n, false};
	*missing = SIZE_MAX;
	if (!e.expr)
		return dp_error_nomem();
	for (size_t i = 0; i < of->n && !err; i++) {
		if (of->class[i].joined)
			continue;
		bool is_string = false;
		err = compile(of->class[i].fields, &asked, &e.expr[i], &is_string);
		compiled += !err;
		strings += !err && is_string;
		if (!err || !is_lack(err))
			continue;
		*missing = *missing == SIZE_MAX ? i : *missing;
		if (first)
			dp_error_destroy(err);
		else
			first = err;
		err = NULL;
	}
	if (!err && !compiled)
		err = dp_take(first, NULL);
	if (!err && strings && strings != compiled)
		err = dp_error(DP_TAG_SYNTAX, "'%s' is a string in some events and a number in others: ask for one --probe",
		               text);
	e.is_string = strings;
	dp_error_destroy(first);
	if (err)
		dp_view_expr_fini(&e);
	else
		*ret = e;
	return err;
}

void dp_view_expr_fini(struct dp_view_expr *e)
{
	for (size_t i = 0; i < e->n; i++)
		dp_expr_destroy(e->expr[i]);
	free(e->expr);
	*e = (struct dp_view_expr){0};
}

/* ---- evaluating ------------------------------------------------------------------------------------------------------------ */

/* The bytes of a field, as the expression's loads see them. */
static bool bytes_of(const struct dp_view_values *v, uint64_t i, const uint8_t **bytes, size_t *n)
{
	if (i >= v->n) {
		*bytes = (const uint8_t *)v->class->name;
		*n = strlen(v->class->name) + 1;
		return i == v->n;
	}
	const struct dp_field *f = &v->class->fields->field[i];
	const struct dp_field_value *value = &v->value[i];
	if (value->unreadable)
		return false;
	const bool number = f->type != DP_TYPE_STRING && f->type != DP_TYPE_BYTES && f->type != DP_TYPE_BACKTRACE;
	*bytes = number ? (const uint8_t *)&value->u : value->bytes;
	*n = number ? f->size : value->n * (f->type == DP_TYPE_BACKTRACE ? sizeof(uint64_t) : 1) + (f->type == DP_TYPE_STRING);
	return true;
}

static bool read_field(uint64_t addr, void *buf, size_t n, void *data)
{
	const uint64_t field = (addr >> 32) - 1, offset = addr & UINT32_MAX;
	const uint8_t *bytes;
	size_t size;
	if (!bytes_of(data, field, &bytes, &size) || offset > size || size - offset < n)
		return false;
	memcpy(buf, bytes + offset, n);
	return true;
}

static uint64_t fact(enum dp_fact what, void *data)
{
	const struct dp_event *e = ((const struct dp_view_values *)data)->event;
	switch (what) {
	case DP_FACT_PID:
		return (uint64_t)e->pid;
	case DP_FACT_TID:
		return (uint64_t)e->tid;
	case DP_FACT_TIME:
		return e->ns;
	case DP_FACT_COMM:
		return (uint64_t)(uintptr_t)e->comm;
	default:
		return 0;
	}
}

bool dp_view_eval(const struct dp_view_expr *e, const struct dp_view_values *values, int64_t *ret)
{
	const struct dp_expr_env env = {.fact = fact, .read = read_field, .data = (void *)(uintptr_t)values};
	const struct dp_expr *expr = e->expr[values->event->probe];
	uint64_t v;
	if (!expr || !dp_expr_eval_in(expr, &env, &v))
		return false;
	*ret = (int64_t)v;
	return true;
}

const char *dp_view_text(const struct dp_view_expr *e, const struct dp_view_values *values, bool *null)
{
	int64_t object = 0;
	*null = false;
	if (!dp_view_eval(e, values, &object))
		return NULL;
	const uint64_t i = ((uint64_t)object >> 32) - 1;
	if (i == values->n)
		return values->class->name;
	if (i > values->n)
		return NULL;
	*null = values->value[i].is_null;
	return values->value[i].unreadable && !*null ? "<unreadable>" : (const char *)values->value[i].bytes;
}

/* SPDX-License-Identifier: MIT */
/* The field table, which describes a record's payload to stubs, writers and metadata. */
#include "agent/abi.h"
#include "probes/record/expr.h"
#include "probes/record/fields_internal.h"

#include <stdlib.h>
#include <string.h>

enum { MASK_BITS = 64, PAYLOAD_MAX = DP_RECORD_MAX - sizeof(struct dp_record) };

static bool same_capture(const struct dp_field *a, const struct dp_field *b)
{
	return a->type == b->type && a->size == b->size && a->hex == b->hex && a->source == b->source && a->reg == b->reg &&
	       a->shift == b->shift && a->addr.v == b->addr.v;
}

struct dp_error *dp_fields_append(struct dp_fields *fields, const struct dp_field *field)
{
	for (size_t i = 0; i < fields->n; i++) {
		if (strcmp(fields->field[i].name, field->name))
			continue;
		if (same_capture(&fields->field[i], field))
			return NULL;
		return dp_error(DP_TAG_SYNTAX, "two different fields have the name '%s': give one of them another name",
		                field->name);
	}
	struct dp_field *grown = reallocarray(fields->field, fields->n + 1, sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	fields->field = grown;
	grown[fields->n] = *field;
	grown[fields->n].name = strdup(field->name);
	if (!grown[fields->n].name)
		return dp_error_nomem();
	fields->n++;
	return NULL;
}

struct dp_error *dp_fields_check(const struct dp_fields *fields, const char *context)
{
	if (dp_fields_may_fault(fields) && fields->n > MASK_BITS)
		return dp_error(DP_TAG_SYNTAX, "'%s' gives %zu fields, but a probe that reads memory can have at most %d",
		                context, fields->n, MASK_BITS);
	size_t size = dp_fields_max_payload(fields);
	if (size > PAYLOAD_MAX)
		return dp_error(DP_TAG_SYNTAX,
		                "'%s' makes the record too large: %zu bytes, at most %d fit; shorten strings, bytes or backtrace",
		                context, size, (int)PAYLOAD_MAX);
	return NULL;
}

void dp_field_fini(struct dp_field *field)
{
	free(field->name);
	free(field->label);
	free((void *)field->names);
	dp_expr_destroy(field->expr);
	dp_expr_destroy(field->high);
	dp_expr_destroy(field->count);
	*field = (struct dp_field){0};
}

void dp_fields_cut(struct dp_fields *fields, size_t n)
{
	while (fields->n > n)
		dp_field_fini(&fields->field[--fields->n]);
}

void dp_fields_fini(struct dp_fields *fields)
{
	dp_fields_cut(fields, 0);
	free(fields->field);
	*fields = (struct dp_fields){0};
}

bool dp_field_may_fault(const struct dp_field *field)
{
	switch (field->source) {
	case DP_SRC_MEMORY:
	case DP_SRC_STRING:
	case DP_SRC_NONE:
		return true;
	case DP_SRC_EXPR:
		return dp_expr_may_fail(field->expr);
	default:
		return false;
	}
}

bool dp_fields_may_fault(const struct dp_fields *fields)
{
	for (size_t i = 0; i < fields->n; i++)
		if (dp_field_may_fault(&fields->field[i]))
			return true;
	return false;
}

static bool has_source(const struct dp_fields *fields, enum dp_source_kind source)
{
	for (size_t i = 0; i < fields->n; i++)
		if (fields->field[i].source == source)
			return true;
	return false;
}

bool dp_fields_unwind(const struct dp_fields *fields)
{
	return has_source(fields, DP_SRC_UNWIND);
}

bool dp_fields_park(const struct dp_fields *fields)
{
	return has_source(fields, DP_SRC_PARK);
}

bool dp_fields_registers(const struct dp_fields *fields)
{
	return dp_fields_unwind(fields) || dp_fields_park(fields);
}

size_t dp_fields_max_payload(const struct dp_fields *fields)
{
	size_t size = dp_fields_may_fault(fields) ? DP_MASK_BYTES : 0;
	for (size_t i = 0; i < fields->n; i++) {
		const struct dp_field *f = &fields->field[i];
		size += f->type == DP_TYPE_BACKTRACE ? 1 + f->size * sizeof(uint64_t) : f->size;
	}
	return size;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool dp_fields_alike(const struct dp_fields *a, const struct dp_fields *b)
{
	if (a->n != b->n || dp_fields_may_fault(a) != dp_fields_may_fault(b))
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct dp_field *x = &a->field[i], *y = &b->field[i];
		if (strcmp(x->name, y->name) || x->type != y->type || x->size != y->size || x->display != y->display ||
		    x->hex != y->hex || (x->source == DP_SRC_NONE) != (y->source == DP_SRC_NONE) ||
		    !same_text(x->label, y->label))
			return false;
	}
	return true;
}

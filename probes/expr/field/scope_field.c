/* SPDX-License-Identifier: MIT */
/* Makes a field. What was typed is its label; its name is an identifier made from the label. */
#include "agent/abi.h"
#include "base/cleanup.h"
#include "probes/expr/field/scope_fields.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LENGTH = 100 };

/* "req->hdr.len" -> "req_hdr_len" */
static void make_name(const char *label, char name[NAME_LENGTH + 24])
{
	size_t n = 0;
	for (; *label && n < NAME_LENGTH; label++) {
		const bool fits = isalnum((unsigned char)*label) || *label == '_';
		if (fits && (n || !isdigit((unsigned char)*label)))
			name[n++] = *label;
		else if (n && name[n - 1] != '_')
			name[n++] = '_';
	}
	while (n && name[n - 1] == '_')
		n--;
	/* Names with a leading underscore are reserved for recordings. */
	const size_t under = strspn(name, "_") < n ? strspn(name, "_") : n;
	memmove(name, name + under, n - under);
	name[n - under] = '\0';
	if (n == under || isdigit((unsigned char)*name))
		memcpy(name, "value", sizeof("value"));
}

static bool is_taken(const struct dp_fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->n; i++)
		if (!strcmp(fields->field[i].name, name))
			return true;
	return false;
}

static bool same_expr(const struct dp_expr *a, const struct dp_expr *b)
{
	if (!a || !b)
		return a == b;
	return a->kind == b->kind && a->op == b->op && a->value == b->value && a->reg == b->reg && a->shift == b->shift &&
	       a->size == b->size && a->is_signed == b->is_signed && a->match == b->match && !a->text == !b->text &&
	       (!a->text || !strcmp(a->text, b->text)) && same_expr(a->a, b->a) && same_expr(a->b, b->b) && same_expr(a->c, b->c);
}

static bool is_there(const struct dp_fields *fields, const struct dp_field *f)
{
	for (size_t i = 0; i < fields->n; i++) {
		const struct dp_field *g = &fields->field[i];
		if (!strcmp(g->label ? g->label : g->name, f->label) && g->type == f->type && g->size == f->size &&
		    g->source == f->source && g->reg == f->reg && g->shift == f->shift && g->display == f->display &&
		    same_expr(g->expr, f->expr) && same_expr(g->high, f->high) && same_expr(g->count, f->count))
			return true;
	}
	return false;
}

static struct dp_error *push(struct dp_fields_maker *m, struct dp_field *f)
{
	struct dp_field *grown = reallocarray(m->fields->field, m->fields->n + 1, sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	m->fields->field = grown;
	grown[m->fields->n++] = *f;
	*f = (struct dp_field){0};
	return NULL;
}

/* Takes ownership of the field's members. Adds the same field only once; different fields with one name get a number. */
static struct dp_error *append(struct dp_fields_maker *m, const char *given, const char *label, struct dp_field f)
{
	char name[NAME_LENGTH + 24], base[NAME_LENGTH + 24];
	struct dp_error *err = NULL;
	make_name(given ? given : label, name);
	memcpy(base, name, sizeof(base));
	f.label = strdup(given ? given : label);
	if (f.label && is_there(m->fields, &f)) {
		dp_field_fini(&f);
		return NULL;
	}
	for (unsigned k = 2; is_taken(m->fields, name) || !strcmp(name, DP_NAME_BACKTRACE); k++)
		snprintf(name, sizeof(name), "%.*s_%u", NAME_LENGTH, base, k);
	f.name = strdup(name);
	if (f.label && !strcmp(f.label, name)) {
		free(f.label);
		f.label = NULL;
	} else if (!f.label) {
		err = dp_error_nomem();
	}
	if (!err)
		err = f.name ? push(m, &f) : dp_error_nomem();
	if (err)
		dp_field_fini(&f);
	else if (m->budget)
		m->budget--;
	return err;
}

static void describe(struct dp_field *f, const struct dp_operand *o)
{
	const struct dp_ctype *t = o->type;
	f->type = t->kind == DP_CTYPE_FLOAT     ? DP_TYPE_FLOAT
	          : t->kind == DP_CTYPE_POINTER ? DP_TYPE_POINTER
	          : t->is_signed                ? DP_TYPE_INT
	                                        : DP_TYPE_UINT;
	f->size = t->kind == DP_CTYPE_POINTER || !t->size || t->size > 8 ? 8 : (uint32_t)t->size;
	f->hex = t->kind == DP_CTYPE_POINTER;
	f->display = t->is_bool ? DP_DISPLAY_BOOL : t->is_text ? DP_DISPLAY_CHAR : t->display;
	f->names = dp_enumeration_of(t);
	/* A register alone is shown as bits, not as a number. */
	if (t->is_word && o->value && o->value->kind == DP_EXPR_REG) {
		f->type = DP_TYPE_UINT;
		f->hex = true;
		f->size = o->value->size;
	}
}

/* A register is captured directly, without an expression. */
static bool take_register(struct dp_field *f, const struct dp_expr *e)
{
	if (e->kind == DP_EXPR_CAST && e->size >= f->size)
		e = e->a;
	if (e->kind != DP_EXPR_REG || e->size < f->size || f->type == DP_TYPE_FLOAT)
		return false;
	f->source = DP_SRC_REG;
	f->reg = e->reg;
	f->shift = e->shift;
	return true;
}

struct dp_error *dp_field_scalar(struct dp_fields_maker *m, const char *name, const char *label, struct dp_operand o)
{
	struct dp_field f = {.source = DP_SRC_EXPR};
	if (o.absent)
		return dp_field_absent(m, name, label, o.type, o.absent);
	struct dp_expr *value = o.value;
	if (!value)
		return dp_error_nomem();
	describe(&f, &o);
	if (f.type == DP_TYPE_FLOAT && f.size == sizeof(float))
		value = value->kind == DP_EXPR_UNARY && value->op == DP_OP_F2D ? value->a
		                                                               : dp_build_unary(&m->s->arena, DP_OP_D2F, value);
	struct dp_error *err = take_register(&f, value) ? NULL : dp_build_finish(value, &f.expr);
	if (!err) {
		dp_expr_bind(f.expr, m->s->at.site.addr);
		return append(m, name, label, f);
	}
	dp_field_fini(&f);
	return err;
}

static struct dp_error *field_at(struct dp_fields_maker *m, const char *name, const char *label, struct dp_field f,
                                 struct dp_expr *addr)
{
	DP_TRY(dp_build_finish(addr, &f.expr));
	dp_expr_bind(f.expr, m->s->at.site.addr);
	return append(m, name, label, f);
}

struct dp_error *dp_field_text(struct dp_fields_maker *m, const char *name, const char *label, const struct dp_operand *o)
{
	/* with room for the dots of a truncated string */
	const uint64_t size = (o->length ? o->length : DP_TEXT_DEFAULT) + sizeof("...");
	struct dp_field f = {.type = DP_TYPE_STRING,
	                     .size = size > DP_STRING_MAX ? DP_STRING_MAX : (uint32_t)size,
	                     .source = DP_SRC_STRING,
	                     .count_is_signed = o->count_is_signed,
	                     .is_array = o->is_array};
	struct dp_error *err = o->count ? dp_build_finish(o->count, &f.count) : NULL;
	dp_expr_bind(f.count, m->s->at.site.addr);
	if (!err)
		err = dp_build_finish(o->value, &f.expr);
	dp_expr_bind(f.expr, m->s->at.site.addr);
	if (!err)
		return append(m, name, label, f);
	dp_field_fini(&f);
	return err;
}

struct dp_error *dp_field_bytes(struct dp_fields_maker *m, const char *name, const char *label, struct dp_expr *addr, uint64_t n)
{
	const struct dp_field f = {.type = DP_TYPE_BYTES, .size = (uint32_t)n, .source = DP_SRC_MEMORY};
	return field_at(m, name, label, f, addr);
}

/* For values not entirely in memory (registers, constants): captures both halves. */
static struct dp_error *field_halves(struct dp_fields_maker *m, const char *name, const char *label, struct dp_field f,
                                     const struct dp_operand *o)
{
	struct dp_arena *a = &m->s->arena;
	struct dp_storage upper = o->storage;
	const char *absent = NULL;
	upper.offset += 8;
	struct dp_expr *low = dp_storage_read(a, &o->storage, 8, false, &absent),
	               *high = absent ? NULL : dp_storage_read(a, &upper, 8, false, &absent);
	if (absent || dp_expr_may_fail(low) || dp_expr_may_fail(high))
		return dp_field_absent(m, name, label, o->type, absent ? absent : "partly in a register, partly in memory");
	f.source = DP_SRC_EXPR;
	struct dp_error *err = dp_build_finish(low, &f.expr);
	if (!err)
		err = dp_build_finish(high, &f.high);
	if (!err) {
		dp_expr_bind(f.expr, m->s->at.site.addr);
		dp_expr_bind(f.high, m->s->at.site.addr);
		return append(m, name, label, f);
	}
	dp_field_fini(&f);
	return err;
}

struct dp_error *dp_field_wide(struct dp_fields_maker *m, const char *name, const char *label, const struct dp_operand *o)
{
	const struct dp_field f = {.type = DP_TYPE_BYTES, .size = 16, .source = DP_SRC_MEMORY, .display = o->type->display};
	const char *absent = NULL;
	if (o->bits)
		return dp_field_absent(m, name, label, o->type, "a bit-field of 128 bits, which dynprobe does not support");
	struct dp_expr *addr = dp_storage_whole(&m->s->arena, &o->storage, f.size, &absent);
	return addr ? field_at(m, name, label, f, addr) : field_halves(m, name, label, f, o);
}

/* A field without a value always has an integer-like type, because nothing is read. */
struct dp_error *dp_field_absent(struct dp_fields_maker *m, const char *name, const char *label, const struct dp_ctype *type,
                                 const char *why)
{
	struct dp_field f = {0};
	const struct dp_operand o = {.type = type};
	if (dp_ctype_is_scalar(type)) {
		describe(&f, &o);
	} else {
		f.type = DP_TYPE_UINT;
		f.size = 1;
	}
	f.source = DP_SRC_NONE;
	f.absent = why;
	return append(m, name, label, f);
}

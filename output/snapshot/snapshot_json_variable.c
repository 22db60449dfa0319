/* SPDX-License-Identifier: MIT */
/*
 * Variables as JSON. A snapshot may have several hundred thousand, so redundant members are omitted (see
 * docs/snapshot-format.md): what all variables of a type share is written once, in `types`; a place implied by the list, a number
 * equal to the value, and an address implied by the owner are not written.
 */
#include "base/text_hash.h"
#include "output/snapshot/snapshot_json_internal.h"

#include <math.h>
#include <string.h>
#include <utlist.h>

struct dp_json_type {
	UT_hash_handle hh;
	const char *name;
	const char *base_type;
	enum dp_var_kind kind;
	uint64_t size;
};

static const char *const kind_name[] = {"bottom", "ll",     "ull",  "flt",   "dbl",   "ldbl", "cflt",     "cdbl",
                                        "cldbl",  "string", "enum", "tuple", "array", "fn",   "reference"};
static const char *const place_name[] = {"local", "parameter", "global", "tls", "child"};

#define PUT(text) dp_buf_put(&j->b, (text), sizeof(text) - 1)

static void put_member(struct dp_json *j, const char *name, const char *text)
{
	dp_json_name(j, name);
	dp_put_json_str(&j->b, text);
}

static void put_word(struct dp_json *j, const char *name, const char *word)
{
	dp_json_name(j, name);
	PUT("\"");
	dp_put_str(&j->b, word);
	PUT("\"");
}

static void put_count(struct dp_json *j, const char *name, uint64_t n)
{
	dp_json_name(j, name);
	dp_put_dec(&j->b, n);
}

static void put_flag(struct dp_json *j, const char *name, bool is)
{
	if (!is)
		return;
	dp_json_name(j, name);
	PUT("true");
}

/* ---- types */

/* NULL without memory: then everything is written with the variable. */
static struct dp_json_type *type_of(struct dp_json *j, const struct dp_snap_variable *v)
{
	struct dp_json_type *t;
	HASH_FIND(hh, j->types, v->type, strlen(v->type), t);
	if (t || !(t = calloc(1, sizeof(*t))))
		return t;
	*t = (struct dp_json_type){.name = v->type, .base_type = v->base_type, .kind = v->kind, .size = v->size};
	HASH_ADD_KEYPTR(hh, j->types, t->name, strlen(t->name), t);
	return t;
}

void dp_json_types(struct dp_json *j)
{
	PUT("{");
	for (const struct dp_json_type *t = j->types; t; t = t->hh.next) {
		dp_buf_put(&j->b, ",", t != j->types);
		dp_put_json_str(&j->b, t->name);
		PUT(":{");
		put_word(j, "kind", kind_name[t->kind]);
		if (*t->base_type)
			put_member(j, "base_type", t->base_type);
		if (t->size)
			put_count(j, "size", t->size);
		PUT("}");
	}
	PUT("}");
}

void dp_json_types_fini(struct dp_json *j)
{
	struct dp_json_type *t, *next;
	HASH_ITER(hh, j->types, t, next)
	{
		HASH_DEL(j->types, t);
		free(t);
	}
}

/* ---- a variable */

static void put_type(struct dp_json *j, const struct dp_snap_variable *v)
{
	const struct dp_json_type *t = type_of(j, v);
	put_member(j, "type", v->type);
	if (!t || (t->base_type != v->base_type && strcmp(t->base_type, v->base_type)))
		put_member(j, "base_type", v->base_type);
	if (!t || t->kind != v->kind)
		put_word(j, "kind", kind_name[v->kind]);
	if (!t || t->size != v->size)
		put_count(j, "size", v->size);
}

/* The address that the owner implies, or 0. */
static uint64_t usual_address(const struct dp_snap_variable *v, const struct dp_snap_variable *owner)
{
	if (!owner || !v->name)
		return 0;
	if (owner->kind == DP_VAR_REFERENCE && v->name[0] == '*' && !v->name[1])
		return owner->number;
	if (owner->kind == DP_VAR_ARRAY && owner->address && v->index > 0)
		return owner->address + (uint64_t)v->index * v->size;
	return owner->kind == DP_VAR_ARRAY && !v->index ? owner->address : 0;
}

static void put_place(struct dp_json *j, const struct dp_snap_variable *v, const struct dp_snap_variable *owner)
{
	const enum dp_var_place usual = owner ? DP_VAR_CHILD : v->frame ? DP_VAR_LOCAL : v->thread ? DP_VAR_TLS : DP_VAR_GLOBAL;
	if (v->place != usual)
		put_word(j, "place", place_name[v->place]);
	if (v->index != -1) {
		dp_json_name(j, "index");
		dp_put_signed(&j->b, v->index);
	}
	if (v->address == usual_address(v, owner))
		return;
	dp_json_name(j, "address");
	PUT("\"");
	dp_put_hex(&j->b, v->address);
	PUT("\"");
}

/* Does the value begin with the number? */
static bool says_number(const struct dp_snap_variable *v)
{
	if (v->summary || v->state != DP_VAR_OK)
		return false;
	return v->kind == DP_VAR_REFERENCE || ((v->kind == DP_VAR_LL || v->kind == DP_VAR_ULL) && !v->is_bool);
}

static void put_number(struct dp_json *j, const struct dp_snap_variable *v)
{
	if (!v->number || says_number(v))
		return;
	dp_json_name(j, "number");
	PUT("\"");
	if (v->kind == DP_VAR_LL || v->kind == DP_VAR_ENUM)
		dp_put_signed(&j->b, (int64_t)v->number);
	else
		dp_put_dec(&j->b, v->number);
	PUT("\"");
}

/* JSON has no number for nan and infinities: they are written as strings. */
static void put_real(struct dp_json *j, const char *name, double v)
{
	const bool is_number = isfinite(v);
	if (v == 0 && !signbit(v))
		return;
	dp_json_name(j, name);
	dp_buf_put(&j->b, "\"", !is_number);
	dp_put_double(&j->b, v, 8);
	dp_buf_put(&j->b, "\"", !is_number);
}

static void put_reals(struct dp_json *j, const struct dp_snap_variable *v)
{
	const bool says = !v->summary && v->state == DP_VAR_OK && !v->text && v->kind == DP_VAR_DBL && isfinite(v->real);
	if (!says)
		put_real(j, "real", v->real);
	put_real(j, "imaginary", v->imaginary);
}

/* Text that JSON cannot represent is written again as bytes. */
static void put_text(struct dp_json *j, const struct dp_snap_variable *v)
{
	const size_t n = !v->text ? 0 : v->is_string ? v->text_size : strlen(v->text);
	if (!v->text)
		return;
	dp_json_name(j, "text");
	const size_t before = j->b.len;
	dp_put_json(&j->b, v->text, n);
	if (j->b.failed || !memmem(j->b.data + before, j->b.len - before, "\xef\xbf\xbd", 3))
		return;
	dp_json_name(j, "text_hex");
	PUT("\"");
	dp_put_hexdump(&j->b, (const uint8_t *)v->text, n);
	PUT("\"");
}

static void put_flags(struct dp_json *j, const struct dp_snap_variable *v)
{
	put_flag(j, "is_string", v->is_string);
	put_flag(j, "is_cut", v->is_cut);
	put_flag(j, "is_bool", v->is_bool);
	put_flag(j, "is_char", v->is_char);
	put_flag(j, "is_union", v->is_union);
	put_flag(j, "is_synthesized", v->is_synthesized);
	put_flag(j, "is_hidden", v->is_hidden);
	put_flag(j, "is_late", v->is_late);
	put_flag(j, "is_shared", v->is_shared);
}

static void put_rest(struct dp_json *j, const struct dp_snap_variable *v)
{
	if (v->state != DP_VAR_OK)
		put_word(j, "state", v->state == DP_VAR_ABSENT ? "absent" : "unreadable");
	if (v->why)
		put_member(j, "why", v->why);
	if (v->bits)
		put_count(j, "bits", v->bits);
	if (v->summary)
		put_member(j, "summary", v->summary);
	if (*v->object)
		put_member(j, "object", v->object);
	if (*v->unit)
		put_member(j, "unit", v->unit);
	dp_json_notes(j, v->notes);
	if (v->more)
		put_count(j, "more", v->more);
}

static void put_variable(struct dp_json *j, const struct dp_snap_variable *v, const struct dp_snap_variable *owner)
{
	PUT("{");
	j->value.len = 0;
	dp_show_value(&j->value, v);
	j->failed |= j->value.failed;
	dp_json_name(j, "value");
	dp_put_json(&j->b, dp_buf_str(&j->value), j->value.len);
	put_member(j, "name", v->name);
	put_type(j, v);
	put_place(j, v, owner);
	put_number(j, v);
	put_reals(j, v);
	put_text(j, v);
	put_flags(j, v);
	put_rest(j, v);
	if (v->children && j->depth < DP_STORE_DEPTH)
		dp_json_variables(j, "children", v->children, v);
	PUT("}");
	dp_json_flush(j, DP_JSON_FULL);
}

void dp_json_variables(struct dp_json *j, const char *name, const struct dp_snap_variable *list,
                       const struct dp_snap_variable *owner)
{
	const struct dp_snap_variable *v;
	if (name)
		dp_json_name(j, name);
	PUT("[");
	j->depth++;
	DL_FOREACH(list, v)
	{
		dp_buf_put(&j->b, ",", v != list);
		put_variable(j, v, owner);
	}
	j->depth--;
	PUT("]");
}

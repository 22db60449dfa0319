/* SPDX-License-Identifier: MIT */
/*
 * Makes the fields of one value: a struct gives a field per member, an array one for each of its first elements; char
 * arrays and char pointers are strings.
 */
#include "probes/expr/field/scope_fields.h"

#include <ctype.h>
#include <dwarf.h>
#include <string.h>

enum { DEPTH_MAX = 2, ELEMENTS = 8, SLICE_ELEMENTS = 60, BYTES_SHOWN = 64, BYTES_MAX = 1024 };

struct flatten {
	struct dp_fields_maker *m;
	const struct dp_operand *record;
	const char *name, *label, *join;
	unsigned depth, unnamed;
};
static struct dp_error *flatten(const struct flatten *f);

/* The position after the bracket that closes the one at `text`. */
static const char *behind(const char *text)
{
	size_t open = 0;
	do {
		open += *text == '(' || *text == '[';
		open -= *text == ')' || *text == ']';
		text += *text != 0;
	} while (open && *text);
	return text;
}

static const char *behind_name(const char *text)
{
	text += strspn(text, " \t\n");
	while (isalnum((unsigned char)*text) || (*text && strchr("_$:", *text)))
		text++;
	return text + strspn(text, " \t\n");
}

/* True if a member or element written after the text applies to all of it. Not so for `*p`, `&x` and `(struct s *)p`. */
static bool takes_suffix(const char *text)
{
	text = *text == '(' ? behind(text) : behind_name(text);
	for (;;) {
		text += strspn(text, " \t\n");
		if (*text == '[')
			text = behind(text);
		else if (*text == '.')
			text = behind_name(text + 1);
		else if (text[0] == '-' && text[1] == '>')
			text = behind_name(text + 2);
		else
			return !*text;
	}
}

static const char *as_base(struct dp_arena *a, const char *label)
{
	return takes_suffix(label) ? label : dp_arena_printf(a, "(%s)", label);
}

/* Bases and unnamed members are replaced by their members. */
static struct dp_error *flatten_member(const struct flatten *f, const struct dp_member *member)
{
	struct dp_arena *a = &f->m->s->arena;
	const struct dp_operand o = dp_operand_member(f->m->s, f->record, member);
	if (member->is_artificial) /* the pointer to the virtual table */
		return NULL;
	if (!member->name) {
		struct flatten inner = *f;
		inner.record = &o;
		return ++inner.unnamed < 8 ? flatten(&inner) : NULL;
	}
	const char *label = dp_arena_printf(a, "%s%s%s", f->label, f->join, member->name);
	const char *name = f->name ? dp_arena_printf(a, "%s_%s", f->name, member->name) : NULL;
	return label && (name || !f->name) ? dp_fields_of(f->m, name, label, o, f->depth + 1) : dp_error_nomem();
}

static struct dp_error *flatten(const struct flatten *f)
{
	const struct dp_member *m;
	const size_t n = dp_ctype_members(f->record->type, &m);
	for (size_t i = 0; i < n && f->m->budget; i++)
		DP_TRY(flatten_member(f, &m[i]));
	return NULL;
}

static struct dp_error *record_fields(struct dp_fields_maker *m, const char *name, const char *label, struct dp_operand o,
                                      unsigned depth)
{
	o.type = dp_type_complete(m->s, o.type);
	if (depth >= DEPTH_MAX)
		return NULL;
	struct flatten f = {.m = m, .record = &o, .name = name, .label = label, .join = ".", .depth = depth};
	/* *req is shown as req->len. */
	if (label[0] == '*') {
		f.label = label + 1 + strspn(label + 1, " ");
		f.join = "->";
	}
	f.label = as_base(&m->s->arena, f.label);
	if (!f.label)
		return dp_error_nomem();
	if (!o.type->size)
		return dp_field_absent(m, name, label, o.type, "of a type that is only declared");
	return flatten(&f);
}

static struct dp_error *element_fields(struct dp_fields_maker *m, const char *name, const char *label, struct dp_operand o,
                                       const struct dp_ctype *to, unsigned depth)
{
	const uint64_t limit = o.is_slice ? SLICE_ELEMENTS : ELEMENTS, n = o.type->count < limit ? o.type->count : limit;
	struct dp_arena *a = &m->s->arena;
	const char *base = as_base(a, label);
	for (uint64_t i = 0; i < n && m->budget; i++) {
		struct dp_operand e = o;
		e.type = to;
		e.is_slice = false;
		e.storage.offset += i * to->size;
		const char *l = base ? dp_arena_printf(a, "%s[%llu]", base, (unsigned long long)i) : NULL;
		const char *k = name ? dp_arena_printf(a, "%s_%llu", name, (unsigned long long)i) : NULL;
		if (!l || (name && !k))
			return dp_error_nomem();
		DP_TRY(dp_fields_of(m, k, l, e, depth + 1));
	}
	return NULL;
}

static struct dp_error *array_fields(struct dp_fields_maker *m, const char *name, const char *label, struct dp_operand o,
                                     unsigned depth)
{
	const char *absent = NULL;
	const struct dp_ctype *to = dp_ctype_to(o.type);
	struct dp_expr *addr = dp_storage_address(&m->s->arena, &o.storage, &absent);
	const bool byte = to->kind == DP_CTYPE_INT && to->size == 1 && !to->is_bool && !to->is_enum;
	if (o.storage.n == 1 && o.storage.piece->kind == DP_PIECE_NONE)
		return dp_field_absent(m, name, label, o.type, o.storage.piece->absent);
	if (byte && addr && to->is_text && !o.is_slice)
		return dp_field_text(
		        m, name, label,
		        &(struct dp_operand){.value = addr,
		                             .is_array = true,
		                             .length = o.type->count && o.type->count < BYTES_SHOWN ? o.type->count : 0});
	if (byte && addr && o.type->count) {
		const uint64_t limit = o.is_slice ? BYTES_MAX : BYTES_SHOWN;
		return dp_field_bytes(m, name, label, addr, o.type->count < limit ? o.type->count : limit);
	}
	if (!o.type->count || !to->size)
		return dp_field_absent(m, name, label, o.type, "an array of unknown length: give a slice, a[0:4]");
	/* The elements of an array of structs are a level of their own, but may still show members. */
	return depth > DEPTH_MAX
	               ? NULL
	               : element_fields(m, name, label, o, to, to->kind == DP_CTYPE_RECORD && depth ? depth - 1 : depth);
}

struct dp_error *dp_fields_of(struct dp_fields_maker *m, const char *name, const char *label, struct dp_operand o, unsigned depth)
{
	const struct dp_ast here = {.kind = DP_AST_NAME};
	if (!m->budget)
		return NULL;
	if (o.is_place && o.type->kind == DP_CTYPE_RECORD && o.storage.n == 1 && o.storage.piece->kind == DP_PIECE_NONE)
		return dp_field_absent(m, name, label, o.type, o.storage.piece->absent);
	if (o.is_place && o.type->kind == DP_CTYPE_RECORD && !dp_lower_counted(m->s, &o))
		return record_fields(m, name, label, o, depth);
	if (o.is_place && o.type->kind == DP_CTYPE_ARRAY)
		return array_fields(m, name, label, o, depth);
	if (o.is_place && dp_ctype_is_wide(o.type))
		return dp_field_wide(m, name, label, &o);
	DP_TRY(dp_lower_value(m->s, &here, &o));
	if (o.absent)
		return dp_field_absent(m, name, label, o.type, o.absent);
	if (o.is_comm || (o.value && o.value->kind == DP_EXPR_FACT && o.value->value == DP_FACT_TIME))
		return dp_field_absent(m, name, label, &dp_ctype_int, "every event has it already");
	const struct dp_ctype *to = o.type->kind == DP_CTYPE_POINTER ? dp_ctype_to(o.type) : NULL;
	if (o.is_str || (to && to->is_text))
		return dp_field_text(m, name, label, &o);
	return dp_field_scalar(m, name, label, o);
}

/* SPDX-License-Identifier: MIT */
/*
 * Expressions on recorded events: the language is the same, but a name is that of a field. So is any part of an expression that
 * was typed for a field: after -t 'req->len', req->len is the value that was recorded.
 *
 * A field is an object in a made-up memory: field i at DP_RECORDED_FIELD(i), with its bytes as in the payload. An expression
 * reads it by ordinary loads, which fail where the field is unreadable.
 */
#include "probes/expr/scope/scope_internal.h"
#include "probes/record/lex.h"
#include "probes/record/registers.h"

#include <stdlib.h>
#include <string.h>

struct dp_recorded_scope {
	const struct dp_fields *fields;
	struct dp_ast **label; /* of each field: as it was typed, or its name; NULL: it is no expression */
};

struct dp_error *dp_scope_recorded(const struct dp_fields *fields, struct dp_scope **ret)
{
	const struct dp_scope_at nowhere = {.point = DP_POINT_PLACE};
	struct dp_scope *s = NULL;
	DP_TRY(dp_scope_create(NULL, &nowhere, &s));
	s->asked = true;
	s->no_debug = dp_error(DP_TAG_NO_DEBUG_INFO, "a recorded trace has only the fields that were recorded, and no types");
	s->recorded = dp_arena_alloc(&s->arena, sizeof(*s->recorded));
	struct dp_ast **label = dp_arena_alloc(&s->arena, (fields->n + 1) * sizeof(*label));
	if (!s->recorded || !label) {
		dp_scope_destroy(s);
		return dp_error_nomem();
	}
	for (size_t i = 0; i < fields->n; i++) {
		const struct dp_field *f = &fields->field[i];
		struct dp_error *err = dp_ast_parse(&s->arena, f->label ? f->label : f->name, &label[i]);
		if (err)
			label[i] = NULL;
		dp_error_destroy(err);
	}
	*s->recorded = (struct dp_recorded_scope){fields, label};
	*ret = s;
	return NULL;
}

/* ---- which field ----------------------------------------------------------------------------------------------------------- */

static bool same_type(const struct dp_ast_type *a, const struct dp_ast_type *b)
{
	return a == b || (a && b && !strcmp(a->name, b->name) && a->pointers == b->pointers && a->dimensions == b->dimensions &&
	                  a->outer == b->outer && !memcmp(a->dimension, b->dimension, sizeof(a->dimension)));
}

/* Whether both say the same; `.` and `->` are interchangeable. */
static bool same(const struct dp_ast *a, const struct dp_ast *b)
{
	if (!a || !b)
		return a == b;
	if (a->kind != b->kind || a->op != b->op || a->value != b->value || memcmp(&a->real, &b->real, sizeof(a->real)) ||
	    !a->name != !b->name || (a->name && strcmp(a->name, b->name) != 0) || !same_type(a->type, b->type))
		return false;
	return same(a->a, b->a) && same(a->b, b->b) && same(a->c, b->c);
}

static bool is_name(const struct dp_ast *ast)
{
	return ast->kind == DP_AST_NAME || ast->kind == DP_AST_REGISTER;
}

/* The text that the field holds was typed as str(x), or x was: both names mean it. */
static const struct dp_ast *without_str(const struct dp_ast *ast)
{
	return ast && ast->kind == DP_AST_STR ? ast->a : ast;
}

/* str(x, 9): the field's label is that of str(x), its size tells the limit. */
static bool has_limit(const struct dp_ast *ast)
{
	return ast->kind == DP_AST_STR && ast->value;
}

static bool is_text(const struct dp_recorded_scope *r, size_t i, const struct dp_ast *ast)
{
	const struct dp_field *f = &r->fields->field[i];
	return f->type == DP_TYPE_STRING && same(without_str(ast), without_str(r->label[i])) &&
	       (!has_limit(ast) || f->size == ast->value + sizeof("..."));
}

static bool is_field(const struct dp_recorded_scope *r, size_t i, const struct dp_ast *ast)
{
	return (is_name(ast) && !strcmp(ast->name, r->fields->field[i].name)) || same(ast, r->label[i]) || is_text(r, i, ast);
}

/* The first; of texts that differ in their limits the longest. */
static bool find_field(const struct dp_recorded_scope *r, const struct dp_ast *ast, size_t *ret)
{
	const struct dp_field *field = r->fields->field;
	bool found = false;
	for (size_t i = 0; i < r->fields->n; i++) {
		const bool longer = found && field[*ret].type == DP_TYPE_STRING && field[i].type == DP_TYPE_STRING &&
		                    field[i].size > field[*ret].size;
		if (!is_field(r, i, ast) || (found && !longer))
			continue;
		*ret = i;
		found = true;
	}
	return found;
}

/* A text of which another part was recorded. */
static bool is_other_part(const struct dp_recorded_scope *r, const struct dp_ast *ast)
{
	size_t i;
	return has_limit(ast) && find_field(r, ast->a, &i) && r->fields->field[i].type == DP_TYPE_STRING;
}

/* ---- its value ------------------------------------------------------------------------------------------------------------- */

static const struct dp_ctype *integer_type(const struct dp_field *f)
{
	static const char *const words[2][4] = {{"uint8_t", "uint16_t", "uint32_t", "uint64_t"},
	                                        {"int8_t", "int16_t", "int32_t", "int64_t"}};
	uint8_t reg, shift, size;
	if (f->display == DP_DISPLAY_BOOL && f->size == 1)
		return &dp_ctype_bool;
	if (f->size == 8 && f->hex && dp_register_find(f->name, &reg, &shift, &size))
		return &dp_ctype_word;
	const unsigned log = f->size == 1 ? 0 : f->size == 2 ? 1 : f->size == 4 ? 2 : 3;
	const struct dp_ctype *t = dp_ctype_plain(words[f->type == DP_TYPE_INT][log]);
	return t ? t : &dp_ctype_long;
}

static const struct dp_ctype *type_of(struct dp_scope *s, const struct dp_field *f)
{
	switch (f->type) {
	case DP_TYPE_FLOAT:
		return f->size == sizeof(float) ? &dp_ctype_float : &dp_ctype_double;
	case DP_TYPE_POINTER:
	case DP_TYPE_STRING:
		return &dp_ctype_void_pointer;
	case DP_TYPE_BYTES:
		return dp_ctype_array(&s->types, dp_ctype_plain("uint8_t"), f->size);
	case DP_TYPE_BACKTRACE:
		return dp_ctype_array(&s->types, &dp_ctype_ulong, f->size);
	default:
		return integer_type(f);
	}
}

static struct dp_error *lower_field(struct dp_scope *s, size_t i, struct dp_operand *ret)
{
	const struct dp_field *f = &s->recorded->fields->field[i];
	struct dp_expr *address = dp_build_const(&s->arena, DP_RECORDED_FIELD(i));
	*ret = (struct dp_operand){.type = type_of(s, f)};
	if (f->source == DP_SRC_NONE)
		ret->absent = f->absent ? f->absent : "it has no value";
	if (f->type == DP_TYPE_STRING) {
		ret->is_str = true;
		ret->value = address;
	} else {
		ret->is_place = true;
		ret->storage = ret->absent ? dp_storage_none(&s->arena, ret->absent) : dp_storage_memory(&s->arena, address);
	}
	return ret->type && address ? NULL : dp_error_nomem();
}

static bool lower_enumerator(struct dp_scope *s, const char *name, struct dp_operand *ret)
{
	const struct dp_fields *fields = s->recorded->fields;
	for (size_t i = 0; i < fields->n; i++)
		for (size_t k = 0; fields->field[i].names && k < fields->field[i].names->n; k++) {
			const struct dp_enumerator *e = &fields->field[i].names->item[k];
			if (strcmp(e->name, name) != 0)
				continue;
			*ret = (struct dp_operand){
			        .type = &dp_ctype_long, .value = dp_build_const(&s->arena, e->value), .is_enumerator = true};
			return true;
		}
	return false;
}

static bool lower_fact(struct dp_scope *s, const char *name, struct dp_operand *ret)
{
	static const struct {
		const char *name;
		enum dp_fact fact;
		const struct dp_ctype *type;
	} facts[] = {{"pid", DP_FACT_PID, &dp_ctype_int},
	             {"tid", DP_FACT_TID, &dp_ctype_int},
	             {"time", DP_FACT_TIME, &dp_ctype_ulong},
	             {"comm", DP_FACT_COMM, &dp_ctype_void_pointer}};
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		if (strcmp(facts[i].name, name) != 0)
			continue;
		*ret = (struct dp_operand){.type = facts[i].type, .is_comm = facts[i].fact == DP_FACT_COMM};
		ret->value = dp_build(&s->arena, (struct dp_expr){.kind = DP_EXPR_FACT, .value = facts[i].fact});
		return true;
	}
	return false;
}

/* The event's name is an object behind the last field. */
static bool lower_probe(struct dp_scope *s, const char *name, struct dp_operand *ret)
{
	if (strcmp(name, "probe") != 0)
		return false;
	*ret = (struct dp_operand){.type = &dp_ctype_void_pointer, .is_str = true};
	ret->value = dp_build_const(&s->arena, DP_RECORDED_FIELD(s->recorded->fields->n));
	return true;
}

static struct dp_error *unknown(struct dp_scope *s, const struct dp_ast *ast)
{
	const struct dp_fields *fields = s->recorded->fields;
	struct dp_buf text;
	dp_buf_init(&text);
	if (is_name(ast))
		dp_buf_printf(&text, "'%s' was not recorded; there are", ast->name);
	else
		dp_buf_printf(&text, "the string was not recorded with this limit; there are");
	for (size_t i = 0; i < fields->n; i++)
		dp_buf_printf(&text, " %s,", fields->field[i].label ? fields->field[i].label : fields->field[i].name);
	dp_buf_printf(&text, " pid, tid, time, comm and probe");
	struct dp_error *err = dp_lex_point(DP_TAG_NO_VARIABLE, s->text, ast->at, dp_buf_str(&text));
	dp_buf_fini(&text);
	return err;
}

struct dp_error *dp_lower_recorded(struct dp_scope *s, const struct dp_ast *ast, bool *found, struct dp_operand *ret)
{
	size_t i;
	*found = true;
	if (find_field(s->recorded, ast, &i))
		return lower_field(s, i, ret);
	if (is_other_part(s->recorded, ast))
		return unknown(s, ast);
	*found = is_name(ast);
	if (!*found || lower_probe(s, ast->name, ret) || lower_fact(s, ast->name, ret) || lower_enumerator(s, ast->name, ret))
		return NULL;
	return unknown(s, ast);
}

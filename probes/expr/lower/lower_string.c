/* SPDX-License-Identifier: MIT */
/*
 * Strings: str(), types that are strings with a length, and comparisons with a text. A string with a length is compared as
 * "the length fits, and then the first bytes are the text's", so that nothing behind its end is read.
 */
#include "probes/dwarf/type_counted.h"
#include "probes/expr/scope/scope_internal.h"
#include "probes/record/lex.h"

#include <string.h>

bool dp_lower_counted(struct dp_scope *s, struct dp_operand *o)
{
	struct dp_counted c;
	if (!o->is_place || o->type->kind != DP_CTYPE_RECORD || !dp_ctype_counted(dp_type_complete(s, o->type), &c))
		return false;
	struct dp_storage data = o->storage, length = o->storage;
	data.offset += c.data;
	length.offset += c.length;
	*o = (struct dp_operand){
	        .type = &dp_ctype_void_pointer, .is_str = true, .is_counted = true, .count_is_signed = c.is_signed};
	o->value = dp_storage_read(&s->arena, &data, sizeof(uint64_t), false, &o->absent);
	o->count = o->absent ? NULL : dp_storage_read(&s->arena, &length, c.size, c.is_signed, &o->absent);
	return true;
}

/* ---- str() ---------------------------------------------------------------------------------------------------------------- */

static struct dp_error *take_count(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	struct dp_operand count;
	DP_TRY(dp_lower(s, ast, &count));
	DP_TRY(dp_lower_value(s, ast, &count));
	if (count.type->kind != DP_CTYPE_INT || count.string || count.is_comm || count.is_str)
		return dp_lex_error(s->text, ast->at, "the length of a string must be an integer");
	ret->count = count.value;
	ret->count_is_signed = count.type->is_signed;
	if (!ret->absent)
		ret->absent = count.absent;
	return NULL;
}

struct dp_error *dp_lower_str(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	DP_TRY(dp_lower(s, ast->a, ret));
	ret->is_array = ret->is_place && ret->type->kind == DP_CTYPE_ARRAY;
	if (!dp_lower_counted(s, ret))
		DP_TRY(dp_lower_value(s, ast->a, ret));
	/* A marker's arguments have sizes, but no types. */
	const bool marker = s->at.usdt && ret->type->size == sizeof(uint64_t) && ret->type->kind != DP_CTYPE_FLOAT;
	if (ret->type->kind != DP_CTYPE_POINTER && !ret->type->is_word && !marker)
		return dp_lex_error(s->text, ast->at, "str() takes a pointer, an array or a register");
	ret->is_str = true;
	ret->is_constant = false;
	ret->length = ast->value;
	return ast->b ? take_count(s, ast->b, ret) : NULL;
}

/* ---- comparisons ---------------------------------------------------------------------------------------------------------- */

static bool is_text(const struct dp_operand *o)
{
	return o->is_str || o->is_comm || o->type->kind == DP_CTYPE_POINTER;
}

/* "GET*" is a prefix, which is cheaper to match than a pattern. */
static enum dp_match match_of(struct dp_scope *s, const char *pattern, const char **text)
{
	const size_t n = strlen(pattern), plain = strcspn(pattern, "*?");
	*text = pattern;
	if (plain == n)
		return DP_MATCH_EQUAL;
	if (plain + 1 != n || pattern[plain] != '*')
		return DP_MATCH_GLOB;
	*text = dp_arena_copy(&s->arena, pattern, plain);
	return DP_MATCH_PREFIX;
}

static struct dp_expr *match_counted(struct dp_scope *s, const struct dp_operand *text, struct dp_expr e)
{
	struct dp_arena *a = &s->arena;
	struct dp_expr *n = dp_build_const(a, strlen(e.text));
	const bool empty = !*e.text;
	if (e.match == DP_MATCH_GLOB) {
		e.b = text->count;
		e.is_signed = text->count_is_signed;
		return e.b ? dp_build(a, e) : NULL;
	}
	/* A negative length is that of an empty string. */
	const bool equal = e.match == DP_MATCH_EQUAL;
	const enum dp_expr_op op = equal                             ? (empty && text->count_is_signed ? DP_OP_LE : DP_OP_EQ)
	                           : text->count_is_signed && !empty ? DP_OP_GE
	                                                             : DP_OP_UGE;
	struct dp_expr *fits = dp_build_binary(a, op, text->count, n);
	e.match = DP_MATCH_PREFIX;
	return empty ? fits : dp_build_binary(a, DP_OP_LAND, fits, dp_build(a, e));
}

struct dp_error *dp_lower_compare_string(struct dp_scope *s, const struct dp_ast *ast, const struct dp_operand *a,
                                         const struct dp_operand *b, struct dp_operand *ret)
{
	const struct dp_operand *literal = b->string ? b : a, *text = b->string ? a : b;
	const char *pattern = literal->string;
	struct dp_expr e = {.kind = DP_EXPR_MATCH, .match = DP_MATCH_EQUAL, .a = text->value};
	if (text->string || !is_text(text) || (ast->op != DP_AST_EQ && ast->op != DP_AST_NE && ast->op != DP_AST_MATCH) ||
	    (ast->op == DP_AST_MATCH && !b->string))
		return dp_lex_error(s->text, ast->at,
		                    "strings are compared with ==, != or (on the right, with * and ?) =~: p == \"GET\"");
	*ret = (struct dp_operand){.type = &dp_ctype_int, .absent = text->absent};
	if (text->absent)
		return NULL;
	if (ast->op == DP_AST_MATCH)
		e.match = match_of(s, pattern, &pattern);
	if (pattern && strlen(pattern) > 255)
		return dp_lex_error(s->text, ast->at, "a string in a comparison can have at most 255 characters");
	e.text = (char *)pattern;
	if (pattern && e.a)
		ret->value = text->count ? match_counted(s, text, e) : dp_build(&s->arena, e);
	if (ast->op == DP_AST_NE)
		ret->value = dp_build_unary(&s->arena, DP_OP_NOT, ret->value);
	return NULL;
}

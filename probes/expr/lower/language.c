/* SPDX-License-Identifier: MIT */
/* Compiles an expression, from its text to the value that a probe uses. */
#include "probes/expr/scope/scope_internal.h"
#include "probes/record/lex.h"

static struct dp_error *no_value(const char *text, const char *why)
{
	struct dp_error *err = dp_error(DP_TAG_NO_VALUE, "'%s' has no value at this place: %s", text, why);
	return dp_absent_before_return(why) ? dp_error_advise(err, "probe the function's returns: --return FUNCTION") : err;
}

static struct dp_error *lower_integer(struct dp_scope *s, const char *text, struct dp_operand *o)
{
	struct dp_ast *ast = NULL;
	s->text = text;
	DP_TRY(dp_ast_parse(&s->arena, text, &ast));
	DP_TRY(dp_lower(s, ast, o));
	struct dp_operand counted = *o;
	if (dp_lower_counted(s, &counted))
		return dp_lex_error(text, ast->at, "this is a string: compare it with == or =~, or count by str(%s)", text);
	DP_TRY(dp_lower_value(s, ast, o));
	if (o->absent)
		return no_value(text, o->absent);
	if (o->string || o->is_comm)
		return dp_lex_error(text, ast->at, "this is a string: compare it with == or =~");
	return NULL;
}

/* The value of a string is its address. */
struct dp_error *dp_scope_key(struct dp_scope *scope, const char *text, struct dp_expr **ret, bool *is_string)
{
	struct dp_operand o = {0};
	DP_TRY(lower_integer(scope, text, &o));
	*is_string = o.is_str;
	if (!o.is_str)
		return dp_scope_expr(scope, text, ret);
	return dp_build_finish(o.value, ret);
}

static struct dp_error *scope_expr(struct dp_scope *s, const char *text, bool is_condition, struct dp_expr **ret)
{
	struct dp_operand o = {0};
	DP_TRY(lower_integer(s, text, &o));
	if (!is_condition && o.is_str) /* its value is the address: equal strings would differ */
		return dp_lex_error(text, 0,
		                    "this is a string, and values are numbers: --count --by 'str(...)' counts equal strings");
	if (is_condition)
		o = dp_lower_truth(s, o);
	else if (o.type->kind == DP_CTYPE_FLOAT)
		o = dp_lower_convert(s, o, &dp_ctype_long);
	DP_TRY(dp_build_finish(o.value, ret));
	dp_expr_bind(*ret, s->at.site.addr);
	return NULL;
}

static struct dp_error *anywhere(struct dp_scope *scope, const char *text, bool is_condition, struct dp_expr **ret)
{
	struct dp_scope none = {.asked = true, .types.arena = &none.arena};
	if (scope)
		return scope_expr(scope, text, is_condition, ret);
	none.no_debug = dp_error(DP_TAG_NO_DEBUG_INFO, "names of the program can be used only at a probe's place");
	struct dp_error *err = scope_expr(&none, text, is_condition, ret);
	dp_error_destroy(none.no_debug);
	dp_arena_fini(&none.arena);
	return err;
}

struct dp_error *dp_scope_expr(struct dp_scope *scope, const char *text, struct dp_expr **ret)
{
	return anywhere(scope, text, false, ret);
}

struct dp_error *dp_scope_condition(struct dp_scope *scope, const char *text, struct dp_expr **ret)
{
	return anywhere(scope, text, true, ret);
}

struct dp_error *dp_expr_parse(const char *text, struct dp_expr **ret)
{
	return dp_scope_expr(NULL, text, ret);
}

/* SPDX-License-Identifier: MIT */
#include "probes/expr/syntax/check.h"

#include "probes/expr/syntax/ast_lex.h"
#include "probes/record/fields_internal.h"
#include "probes/record/lex.h"
#include "probes/record/registers.h"

#include <ctype.h>
#include <string.h>

struct dp_error *dp_scope_check(const char *text)
{
	struct dp_arena arena = {0};
	struct dp_ast *ast = NULL;
	struct dp_error *err = dp_ast_parse(&arena, text, &ast);
	dp_arena_fini(&arena);
	return err;
}

bool dp_scope_is_text(const char *text, uint64_t *most)
{
	struct dp_arena arena = {0};
	struct dp_ast *ast = NULL;
	struct dp_error *err = dp_ast_parse(&arena, text, &ast);
	const bool is = !err && ast->kind == DP_AST_STR;
	*most = is && ast->value ? ast->value : DP_TEXT_DEFAULT;
	dp_error_destroy(err);
	dp_arena_fini(&arena);
	return is;
}

/* $duration, $retval and $rip are never variables, but depend on the place. */
static bool is_of_a_place(const struct dp_token *t)
{
	return t->kind == DP_TOKEN_NAME ||
	       (t->kind == DP_TOKEN_REGISTER &&
	        (!strcmp(t->text, "duration") || !strcmp(t->text, "retval") || !strcmp(t->text, "rip")));
}

bool dp_scope_has_names(const char *text)
{
	struct dp_arena arena = {0};
	struct dp_token t = {.kind = DP_TOKEN_OP};
	bool found = false;
	while (!found && t.kind != DP_TOKEN_END) {
		struct dp_error *err = dp_token_next(&arena, text, t.end, &t);
		found = err || is_of_a_place(&t);
		dp_error_destroy(err);
	}
	dp_arena_fini(&arena);
	return found;
}

static size_t identifier(const char *text)
{
	size_t n = 0;
	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	return dp_lex_identifier(text, n) ? n : 0;
}

bool dp_scope_is_fixed(const char *context)
{
	const size_t n = identifier(context);
	size_t at = n;
	if (!strcmp(context, "regs") || !strcmp(context, DP_NAME_BACKTRACE) || !strcmp(context, DP_CONTEXT_SNAPSHOT))
		return true;
	if (n && context[at] == '[')
		at += strcspn(context + at, "]") + (strchr(context + at, ']') != NULL);
	return n && context[at] == ':' && context[at + 1] != ':';
}

size_t dp_context_given_name(const char *text, size_t *n)
{
	*n = identifier(text);
	const size_t blank = *n + strspn(text + *n, " ");
	return *n && text[blank] == '=' && text[blank + 1] != '=' && text[blank + 1] != '~' ? blank + 1 : 0;
}

struct dp_error *dp_context_check(const char *context)
{
	if (!strcmp(context, "args") || !strcmp(context, "locals"))
		return NULL;
	size_t n;
	if (!dp_scope_is_fixed(context))
		return dp_scope_check(context + dp_context_given_name(context, &n));
	struct dp_fields scratch = {0};
	struct dp_error *err = dp_fields_add(&scratch, context);
	dp_fields_fini(&scratch);
	return err;
}

static bool names_flags(const struct dp_ast *ast)
{
	if (!ast)
		return false;
	if ((ast->kind == DP_AST_NAME || ast->kind == DP_AST_REGISTER) && dp_register_is_flags(ast->name))
		return true;
	return names_flags(ast->a) || names_flags(ast->b) || names_flags(ast->c);
}

/* Ignores syntax errors: they are reported elsewhere. */
bool dp_context_shows_flags(const char *text)
{
	struct dp_fields fixed = {0};
	struct dp_arena arena = {0};
	struct dp_ast *ast = NULL;
	bool shows = false;
	size_t n;
	struct dp_error *err = dp_scope_is_fixed(text) ? dp_fields_add(&fixed, text)
	                                               : dp_ast_parse(&arena, text + dp_context_given_name(text, &n), &ast);
	for (size_t i = 0; i < fixed.n; i++)
		shows |= fixed.field[i].source == DP_SRC_RFLAGS || fixed.field[i].source == DP_SRC_PARK;
	shows |= !err && names_flags(ast);
	dp_error_destroy(err);
	dp_fields_fini(&fixed);
	dp_arena_fini(&arena);
	return shows;
}

/* SPDX-License-Identifier: MIT */
/* Shared by the files of the parser. */
#ifndef DP_PROBES_EXPR_SYNTAX_AST_PARSE_H
#define DP_PROBES_EXPR_SYNTAX_AST_PARSE_H

#include "probes/expr/syntax/ast_lex.h"
#include "probes/record/lex.h"

#include <string.h>

#define DP_AST_DEPTH_MAX 128u

struct parser {
	struct dp_arena *arena;
	const char *text;
	struct dp_token t; /* the current token */
	unsigned nodes, depth;
};

static inline struct dp_error *advance(struct parser *p)
{
	return dp_token_next(p->arena, p->text, p->t.end, &p->t);
}

static inline bool is_op(const struct parser *p, int op)
{
	return p->t.kind == DP_TOKEN_OP && p->t.op == op;
}

static inline bool is_word(const struct parser *p, const char *word)
{
	return p->t.kind == DP_TOKEN_NAME && !strcmp(p->t.text, word);
}

/* `opened`: where the caret goes on error. */
static inline struct dp_error *expect(struct parser *p, int op, size_t opened, const char *what)
{
	if (!is_op(p, op))
		return dp_lex_error(p->text, opened, "%s", what);
	return advance(p);
}

/* ast_type.c: tries to parse a type after an opened parenthesis. The parser does not move unless it is a type in parentheses.
 * `any`: nothing needs to follow. */
bool dp_ast_try_type(struct parser *p, bool any, struct dp_ast_type **ret);
/* True for a word that is only a C type's name. */
bool dp_ast_is_plain(const char *word);
/* The letter for struct, union, enum or class; 0 for another token. */
int dp_ast_tag(const struct parser *p);

#endif

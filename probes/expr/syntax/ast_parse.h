/* SPDX-License-Identifier: MIT */
/* What the files of the grammar share. */
#ifndef DP_PROBES_AST_PARSE_H
#define DP_PROBES_AST_PARSE_H

#include "probes/expr/syntax/ast_lex.h"
#include "probes/record/lex.h"

#include <string.h>

#define DP_AST_DEPTH_MAX 128u

struct parser {
	struct dp_arena *arena;
	const char *text;
	struct dp_token t; /* the one to be looked at */
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

/* `opened`: where the fault is shown. */
static inline struct dp_error *expect(struct parser *p, int op, size_t opened, const char *what)
{
	if (!is_op(p, op))
		return dp_lex_error(p->text, opened, "%s", what);
	return advance(p);
}

/* ast_type.c: looks ahead behind an opened parenthesis; the parser is left where it was unless it is a type in parentheses.
 * `any`: nothing has to follow. */
bool dp_ast_try_type(struct parser *p, bool any, struct dp_ast_type **ret);
/* A word that names a type of C and nothing else. */
bool dp_ast_is_plain(const char *word);
/* struct, union, enum or class: the letter that stands for it; else 0. */
int dp_ast_tag(const struct parser *p);

#endif

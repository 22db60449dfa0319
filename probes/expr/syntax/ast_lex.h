/* SPDX-License-Identifier: MIT */
/* The tokens of the language. */
#ifndef DP_PROBES_EXPR_SYNTAX_AST_LEX_H
#define DP_PROBES_EXPR_SYNTAX_AST_LEX_H

#include "probes/expr/syntax/ast.h"

enum dp_token_kind {
	DP_TOKEN_END,
	DP_TOKEN_NUMBER,
	DP_TOKEN_FLOAT,
	DP_TOKEN_STRING,
	DP_TOKEN_NAME,
	DP_TOKEN_REGISTER,
	DP_TOKEN_OP
};
struct dp_token {
	enum dp_token_kind kind;
	size_t at, end; /* in the text */
	int op;         /* a character, or enum dp_ast_op */
	uint64_t value;
	bool is_unsigned, is_long, is_single; /* from the suffix: u, l, f */
	double real;
	const char *text; /* strings (unescaped), names */
	size_t len;
};

/* Reads the token at or after `at`; skips spaces. */
struct dp_error *dp_token_next(struct dp_arena *arena, const char *text, size_t at, struct dp_token *ret) DP_MUST_CHECK;

#endif

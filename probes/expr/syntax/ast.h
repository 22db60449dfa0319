/* SPDX-License-Identifier: MIT */
/* The expression language's syntax: the text as a tree. Names are resolved later (scope.h). */
#ifndef DP_PROBES_EXPR_SYNTAX_AST_H
#define DP_PROBES_EXPR_SYNTAX_AST_H

#include "base/error.h"
#include "base/arena.h"

#include <stdint.h>

enum dp_ast_kind {
	DP_AST_NUMBER,   /* value; `is_unsigned`: u suffix or above INT64_MAX; `is_long`: l suffix; `is_typed`: any suffix */
	DP_AST_FLOAT,    /* real; `is_single`: f suffix */
	DP_AST_STRING,   /* name (unescaped), len */
	DP_AST_NAME,     /* name: x, ns::x, file.c::x */
	DP_AST_REGISTER, /* name without the $ */
	DP_AST_UNARY,    /* op: ! ~ - + * & */
	DP_AST_BINARY,   /* op: see enum dp_ast_op */
	DP_AST_COND,     /* a ? b : c */
	DP_AST_MEMBER,   /* a.name; `arrow`: a->name */
	DP_AST_INDEX,    /* a[b] */
	DP_AST_SLICE,    /* a[b:c], constants */
	DP_AST_CAST,     /* (type)a */
	DP_AST_SIZEOF,   /* of `type`, or of a */
	DP_AST_STR,      /* str(a): the string at a; b: its length, or NULL; value: at most so many characters (0: not given) */
};
enum dp_ast_op { /* binary operators; unary ones are their character */
	DP_AST_OR = 256, DP_AST_AND, DP_AST_EQ, DP_AST_NE, DP_AST_MATCH, DP_AST_LE, DP_AST_GE, DP_AST_SHL, DP_AST_SHR,
	DP_AST_ARROW, DP_AST_SCOPE,
};
#define DP_AST_DIMENSIONS 4u
struct dp_ast_type { /* of a cast or sizeof */
	const char *name; /* "unsigned char", "foo_t", "ns::Foo"; without struct, union, enum or class */
	int tag;          /* 's', 'u', 'e', 'c' of these words, or 0 */
	unsigned pointers;
	/* T (*)[3][4]: an array of three arrays of four T; `outer` is the number of stars. */
	uint64_t dimension[DP_AST_DIMENSIONS];
	unsigned dimensions, outer;
	size_t at;
};
struct dp_ast {
	enum dp_ast_kind kind;
	size_t at; /* offset in the text, for carets */
	int op;
	bool arrow, is_unsigned, is_long, is_typed, is_single;
	uint64_t value;
	double real;
	const char *name;
	size_t len;
	struct dp_ast *a, *b, *c;
	struct dp_ast_type *type;
};

/* Parses the whole text as one expression. Errors are DP_TAG_SYNTAX with a caret. Depth and size are bounded. */
struct dp_error *dp_ast_parse(struct dp_arena *arena, const char *text, struct dp_ast **ret) DP_MUST_CHECK;
/* Parses expressions separated by commas, as after a printf format; at most `max`. */
struct dp_error *dp_ast_parse_list(struct dp_arena *arena, const char *text, size_t from, struct dp_ast **ret, size_t max,
                                   size_t *n) DP_MUST_CHECK;
/* The text of an operator of enum dp_ast_op; "" for others. */
const char *dp_ast_binary_text(int op);

#endif

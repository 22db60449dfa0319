/* SPDX-License-Identifier: MIT */
/* Parses types in casts and after sizeof. */
#include "probes/expr/syntax/ast_parse.h"

static const char *const plain_types[] = {"void",   "char",   "short",    "int",   "long", "float",
                                          "double", "signed", "unsigned", "_Bool", "bool", "__int128"};

bool dp_ast_is_plain(const char *word)
{
	for (size_t i = 0; i < sizeof(plain_types) / sizeof(*plain_types); i++)
		if (!strcmp(word, plain_types[i]))
			return true;
	return false;
}

/* Such as uint64_t: not used for variables. */
static bool looks_like_type(const char *name, size_t n)
{
	return n > 2 && !memcmp(name + n - 2, "_t", 2);
}

int dp_ast_tag(const struct parser *p)
{
	return is_word(p, "struct") ? 's' : is_word(p, "union") ? 'u' : is_word(p, "enum") ? 'e' : is_word(p, "class") ? 'c' : 0;
}

static bool is_qualifier(const struct parser *p)
{
	return is_word(p, "const") || is_word(p, "volatile");
}

static struct dp_error *no_type(const struct parser *p)
{
	return dp_lex_error(p->text, p->t.at, "expected a type's name");
}

/* Reads the words of a type's name and joins them with single spaces. */
static struct dp_error *type_name(struct parser *p, struct dp_ast_type *type)
{
	const char *name = NULL;
	bool plain = true;
	type->tag = dp_ast_tag(p);
	if (type->tag)
		DP_TRY(advance(p));
	for (; p->t.kind == DP_TOKEN_NAME;) {
		if (is_qualifier(p)) {
			DP_TRY(advance(p));
			continue;
		}
		if (name && !(plain && dp_ast_is_plain(p->t.text)))
			break;
		plain = dp_ast_is_plain(p->t.text);
		name = name ? dp_arena_printf(p->arena, "%s %s", name, p->t.text) : p->t.text;
		if (!name)
			return dp_error_nomem();
		DP_TRY(advance(p));
	}
	type->name = name;
	return name ? NULL : no_type(p);
}

/* Parses the (*) of a pointer to an array, after the element's type. */
static struct dp_error *parse_outer(struct parser *p, struct dp_ast_type *type)
{
	const size_t open = p->t.at;
	if (!is_op(p, '('))
		return NULL;
	DP_TRY(advance(p));
	for (; is_op(p, '*'); type->outer++)
		DP_TRY(advance(p));
	if (!type->outer || type->outer > DP_AST_DEPTH_MAX)
		return no_type(p);
	DP_TRY(expect(p, ')', open, "this parenthesis is not closed"));
	return is_op(p, '[') ? NULL : dp_lex_error(p->text, p->t.at, "expected [N]: a pointer to an array is (T (*)[N])");
}

static struct dp_error *parse_dimensions(struct parser *p, struct dp_ast_type *type)
{
	while (is_op(p, '[')) {
		const size_t open = p->t.at;
		DP_TRY(advance(p));
		if (p->t.kind != DP_TOKEN_NUMBER || !p->t.value || p->t.value > UINT32_MAX ||
		    type->dimensions == DP_AST_DIMENSIONS)
			return dp_lex_error(p->text, p->t.at, "an array type must have 1 to %u dimensions, such as int[4]",
			                    DP_AST_DIMENSIONS);
		type->dimension[type->dimensions++] = p->t.value;
		DP_TRY(advance(p));
		DP_TRY(expect(p, ']', open, "this bracket is not closed"));
	}
	return NULL;
}

static struct dp_error *parse_type(struct parser *p, struct dp_ast_type **ret)
{
	struct dp_ast_type *type = dp_arena_alloc(p->arena, sizeof(*type));
	if (!type)
		return dp_error_nomem();
	type->at = p->t.at;
	DP_TRY(type_name(p, type));
	while (is_op(p, '*') || is_qualifier(p)) {
		type->pointers += is_op(p, '*');
		DP_TRY(advance(p));
	}
	if (type->pointers > DP_AST_DEPTH_MAX)
		return no_type(p);
	DP_TRY(parse_outer(p, type));
	DP_TRY(parse_dimensions(p, type));
	*ret = type;
	return NULL;
}

/* True if this token after parentheses makes them a cast. */
static bool starts_operand(const struct parser *p)
{
	switch (p->t.kind) {
	case DP_TOKEN_NUMBER:
	case DP_TOKEN_FLOAT:
	case DP_TOKEN_STRING:
	case DP_TOKEN_NAME:
	case DP_TOKEN_REGISTER:
		return true;
	case DP_TOKEN_OP:
		return p->t.op == '(' || p->t.op == '!' || p->t.op == '~';
	default:
		return false;
	}
}

bool dp_ast_try_type(struct parser *p, bool any, struct dp_ast_type **ret)
{
	struct parser ahead = *p;
	struct dp_ast_type *type = NULL;
	if (p->t.kind != DP_TOKEN_NAME)
		return false;
	const bool certain =
	        dp_ast_tag(p) || is_qualifier(p) || dp_ast_is_plain(p->t.text) || looks_like_type(p->t.text, p->t.len);
	struct dp_error *err = parse_type(&ahead, &type);
	if (!err && is_op(&ahead, ')'))
		err = advance(&ahead);
	else if (!err)
		return false;
	if (err) {
		dp_error_destroy(err);
		return false;
	}
	/* (a[4]) is an element unless a is certainly a type. Casts to arrays do not exist. */
	if (type->dimensions && !type->outer && !(any && certain))
		return false;
	if (!certain && !type->pointers && !type->outer && !any && !starts_operand(&ahead))
		return false;
	*p = ahead;
	*ret = type;
	return true;
}

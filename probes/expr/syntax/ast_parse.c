/* SPDX-License-Identifier: MIT */
/*
 * Parses C expressions: precedence climbing with one table of binary operators, recursive descent for the rest. Parentheses are a
 * cast if they contain a type, by its words or stars, or if an operand follows without an operator; so the parser needs no
 * program. Depth and size are bounded, so that recursion over the tree cannot overflow the stack.
 */
#include "probes/expr/syntax/ast_parse.h"

enum { NODES_MAX = 512, TEXT_MAX = 8192, STRING_LIMIT = 1023 };

static struct dp_error *parse_cond(struct parser *p, struct dp_ast **ret);
static struct dp_error *parse_unary(struct parser *p, struct dp_ast **ret);

static struct dp_error *make(struct parser *p, struct dp_ast node, struct dp_ast **ret)
{
	if (++p->nodes > NODES_MAX)
		return dp_lex_error(p->text, node.at, "the expression is too long: at most %d operands and operators", NODES_MAX);
	*ret = dp_arena_alloc(p->arena, sizeof(**ret));
	if (!*ret)
		return dp_error_nomem();
	**ret = node;
	return NULL;
}

static struct dp_error *parse_sizeof(struct parser *p, struct dp_ast **ret)
{
	struct dp_ast node = {.kind = DP_AST_SIZEOF, .at = p->t.at};
	DP_TRY(advance(p));
	if (is_op(p, '(')) {
		const struct parser before = *p;
		DP_TRY(advance(p));
		/* In sizeof (x)->y, x is not a type. */
		if (dp_ast_try_type(p, true, &node.type) && !is_op(p, '.') && !is_op(p, DP_AST_ARROW) && !is_op(p, '[')) {
			/* sizeof (x) may be of a type or a variable: lowering decides, which knows the names. */
			if (!dp_ast_tag(&before) && !node.type->pointers && !node.type->dimensions)
				DP_TRY(make(p, (struct dp_ast){.kind = DP_AST_NAME, .at = node.type->at, .name = node.type->name},
				            &node.a));
			return make(p, node, ret);
		}
		*p = before;
		node.type = NULL;
	}
	DP_TRY(parse_unary(p, &node.a));
	return make(p, node, ret);
}

/* A number that is the whole argument: at most so many characters. */
static struct dp_error *parse_limit(struct parser *p, bool *found, uint64_t *ret)
{
	const struct parser before = *p;
	*found = p->t.kind == DP_TOKEN_NUMBER;
	if (!*found)
		return NULL;
	*ret = p->t.value;
	DP_TRY(advance(p));
	*found = is_op(p, ')');
	if (*found && (!*ret || *ret > STRING_LIMIT))
		return dp_lex_error(p->text, before.t.at,
		                    "the length of a string must be a number from 1 to %d, or an expression", STRING_LIMIT);
	if (!*found)
		*p = before;
	return NULL;
}

/* str(p), str(p, LIMIT), str(p, LENGTH), str(p, LENGTH, LIMIT) */
static struct dp_error *parse_str_rest(struct parser *p, struct dp_ast *node)
{
	bool found;
	DP_TRY(advance(p));
	DP_TRY(parse_limit(p, &found, &node->value));
	if (found)
		return NULL;
	node->value = 0;
	DP_TRY(parse_cond(p, &node->b));
	if (!is_op(p, ','))
		return NULL;
	DP_TRY(advance(p));
	const size_t at = p->t.at;
	DP_TRY(parse_limit(p, &found, &node->value));
	return found ? NULL : dp_lex_error(p->text, at, "the limit of a string must be a number from 1 to %d", STRING_LIMIT);
}

static struct dp_error *parse_str(struct parser *p, struct dp_ast **ret)
{
	struct dp_ast node = {.kind = DP_AST_STR, .at = p->t.at};
	DP_TRY(advance(p));
	const size_t open = p->t.at;
	DP_TRY(advance(p));
	DP_TRY(parse_cond(p, &node.a));
	if (is_op(p, ','))
		DP_TRY(parse_str_rest(p, &node));
	DP_TRY(expect(p, ')', open, "this parenthesis is not closed"));
	return make(p, node, ret);
}

static struct dp_error *parse_name(struct parser *p, struct dp_ast **ret)
{
	const struct dp_ast node = {.kind = DP_AST_NAME, .at = p->t.at, .name = p->t.text, .len = p->t.len};
	if (is_word(p, "sizeof"))
		return parse_sizeof(p, ret);
	const size_t after = p->t.end;
	if (is_word(p, "str") && p->text[after + strspn(p->text + after, " ")] == '(')
		return parse_str(p, ret);
	DP_TRY(advance(p));
	return make(p, node, ret);
}

/* 'my-file.c'::name */
static struct dp_error *parse_string(struct parser *p, struct dp_ast **ret)
{
	struct dp_ast node = {.kind = DP_AST_STRING, .at = p->t.at, .name = p->t.text, .len = p->t.len};
	const bool single = p->text[p->t.at] == '\'';
	DP_TRY(advance(p));
	if (single && !is_op(p, DP_AST_SCOPE))
		return dp_lex_error(p->text, node.at, "single quotes take one character; use double quotes for strings");
	if (!single)
		return make(p, node, ret);
	DP_TRY(advance(p));
	if (p->t.kind != DP_TOKEN_NAME)
		return dp_lex_error(p->text, p->t.at, "expected a variable of that file");
	node.kind = DP_AST_NAME;
	node.name = dp_arena_printf(p->arena, "%s::%s", node.name, p->t.text);
	DP_TRY(advance(p));
	return make(p, node, ret);
}

static struct dp_error *parse_literal(struct parser *p, struct dp_ast **ret)
{
	struct dp_ast node = {.kind = DP_AST_NUMBER,
	                      .at = p->t.at,
	                      .value = p->t.value,
	                      .real = p->t.real,
	                      .is_typed = p->t.is_unsigned || p->t.is_long,
	                      .is_long = p->t.is_long,
	                      .is_single = p->t.is_single,
	                      .is_unsigned = p->t.is_unsigned || (p->t.value > INT64_MAX && p->text[p->t.at] != '\'')};
	if (p->t.kind == DP_TOKEN_FLOAT)
		node.kind = DP_AST_FLOAT;
	if (p->t.kind == DP_TOKEN_REGISTER) {
		node.kind = DP_AST_REGISTER;
		node.name = p->t.text;
	}
	DP_TRY(advance(p));
	return make(p, node, ret);
}

static struct dp_error *parse_parentheses(struct parser *p, struct dp_ast **ret)
{
	const size_t open = p->t.at;
	struct dp_ast node = {.kind = DP_AST_CAST, .at = open};
	DP_TRY(advance(p));
	if (dp_ast_try_type(p, false, &node.type)) {
		DP_TRY(parse_unary(p, &node.a));
		return make(p, node, ret);
	}
	if (p->t.kind == DP_TOKEN_NAME && dp_ast_is_plain(p->t.text))
		return dp_lex_error(p->text, p->t.at, "casts are to types like (int), (struct s *) or (int (*)[4])");
	DP_TRY(parse_cond(p, ret));
	return expect(p, ')', open, "this parenthesis is not closed");
}

static struct dp_error *parse_primary(struct parser *p, struct dp_ast **ret)
{
	switch (p->t.kind) {
	case DP_TOKEN_NUMBER:
	case DP_TOKEN_FLOAT:
	case DP_TOKEN_REGISTER:
		return parse_literal(p, ret);
	case DP_TOKEN_STRING:
		return parse_string(p, ret);
	case DP_TOKEN_NAME:
		return parse_name(p, ret);
	case DP_TOKEN_OP:
		if (p->t.op == '(')
			return parse_parentheses(p, ret);
		return dp_lex_error(p->text, p->t.at, "expected a variable, a register, a number or '('");
	default:
		return dp_lex_error(p->text, p->t.at, "the expression ends too early");
	}
}

/* file.c::name was lexed as several tokens. */
static struct dp_error *parse_file_name(struct parser *p, struct dp_ast **left)
{
	struct dp_ast *m = *left;
	if (m->kind != DP_AST_MEMBER || m->arrow || m->a->kind != DP_AST_NAME)
		return dp_lex_error(p->text, p->t.at, "'::' must be between a file or namespace and a name");
	DP_TRY(advance(p));
	if (p->t.kind != DP_TOKEN_NAME)
		return dp_lex_error(p->text, p->t.at, "expected a variable of that file");
	struct dp_ast node = {.kind = DP_AST_NAME, .at = m->a->at};
	node.name = dp_arena_printf(p->arena, "%s.%s::%s", m->a->name, m->name, p->t.text);
	DP_TRY(advance(p));
	return make(p, node, left);
}

static struct dp_error *parse_member(struct parser *p, struct dp_ast **left)
{
	struct dp_ast node = {.kind = DP_AST_MEMBER, .at = p->t.at, .a = *left, .arrow = is_op(p, DP_AST_ARROW)};
	DP_TRY(advance(p));
	if (p->t.kind != DP_TOKEN_NAME)
		return dp_lex_error(p->text, p->t.at, "expected a member's name");
	node.name = p->t.text;
	node.at = p->t.at;
	const char *scope = node.arrow || node.a->kind != DP_AST_NAME ? NULL : strstr(p->t.text, "::");
	if (scope) { /* file.c::name */
		node.kind = DP_AST_NAME;
		node.at = node.a->at;
		node.name = dp_arena_printf(p->arena, "%s.%s", node.a->name, p->t.text);
		node.a = NULL;
	}
	DP_TRY(advance(p));
	return make(p, node, left);
}

static struct dp_error *parse_index(struct parser *p, struct dp_ast **left)
{
	struct dp_ast node = {.kind = DP_AST_INDEX, .at = p->t.at, .a = *left};
	DP_TRY(advance(p));
	DP_TRY(parse_cond(p, &node.b));
	if (is_op(p, ':')) {
		node.kind = DP_AST_SLICE;
		DP_TRY(advance(p));
		DP_TRY(parse_cond(p, &node.c));
		if (node.b->kind != DP_AST_NUMBER || node.c->kind != DP_AST_NUMBER)
			return dp_lex_error(p->text, node.at,
			                    "the bounds of a slice [FROM:TO] must be numbers; TO is not part of it");
	}
	DP_TRY(expect(p, ']', node.at, "this bracket is not closed"));
	return make(p, node, left);
}

static struct dp_error *parse_postfix(struct parser *p, struct dp_ast **ret)
{
	DP_TRY(parse_primary(p, ret));
	for (;;) {
		if (is_op(p, '.') || is_op(p, DP_AST_ARROW))
			DP_TRY(parse_member(p, ret));
		else if (is_op(p, '['))
			DP_TRY(parse_index(p, ret));
		else if (is_op(p, DP_AST_SCOPE))
			DP_TRY(parse_file_name(p, ret));
		else
			return NULL;
	}
}

static struct dp_error *parse_unary(struct parser *p, struct dp_ast **ret)
{
	struct dp_ast node = {.kind = DP_AST_UNARY, .at = p->t.at, .op = p->t.op};
	const bool is_operator = p->t.kind == DP_TOKEN_OP && p->t.op && p->t.op < 256 && strchr("!~-+*&", p->t.op);
	if (p->depth >= DP_AST_DEPTH_MAX)
		return dp_lex_error(p->text, p->t.at, "the expression is nested too deeply");
	p->depth++;
	if (is_operator) {
		DP_TRY(advance(p));
		DP_TRY(parse_unary(p, &node.a));
		DP_TRY(make(p, node, ret));
	} else {
		DP_TRY(parse_postfix(p, ret));
	}
	p->depth--;
	return NULL;
}

static int precedence(const struct parser *p)
{
	static const struct {
		int op, precedence;
	} table[] = {
	        {DP_AST_OR, 1},    {DP_AST_AND, 2}, {'|', 3},  {'^', 4},       {'&', 5},       {DP_AST_EQ, 6},  {DP_AST_NE, 6},
	        {DP_AST_MATCH, 6}, {'<', 7},        {'>', 7},  {DP_AST_LE, 7}, {DP_AST_GE, 7}, {DP_AST_SHL, 8}, {DP_AST_SHR, 8},
	        {'+', 9},          {'-', 9},        {'*', 10}, {'/', 10},      {'%', 10},
	};
	for (size_t i = 0; p->t.kind == DP_TOKEN_OP && i < sizeof(table) / sizeof(*table); i++)
		if (table[i].op == p->t.op)
			return table[i].precedence;
	return 0;
}

static struct dp_error *parse_binary(struct parser *p, int lowest, struct dp_ast **ret)
{
	if (p->depth >= DP_AST_DEPTH_MAX)
		return dp_lex_error(p->text, p->t.at, "the expression is nested too deeply");
	p->depth++;
	DP_TRY(parse_unary(p, ret));
	for (int level; (level = precedence(p)) >= lowest && level;) {
		struct dp_ast node = {.kind = DP_AST_BINARY, .at = p->t.at, .op = p->t.op, .a = *ret};
		DP_TRY(advance(p));
		DP_TRY(parse_binary(p, level + 1, &node.b));
		DP_TRY(make(p, node, ret));
	}
	p->depth--;
	return NULL;
}

static struct dp_error *parse_cond(struct parser *p, struct dp_ast **ret)
{
	DP_TRY(parse_binary(p, 1, ret));
	if (!is_op(p, '?'))
		return NULL;
	struct dp_ast node = {.kind = DP_AST_COND, .at = p->t.at, .a = *ret};
	if (p->depth >= DP_AST_DEPTH_MAX)
		return dp_lex_error(p->text, p->t.at, "the expression is nested too deeply");
	p->depth++;
	DP_TRY(advance(p));
	DP_TRY(parse_cond(p, &node.b));
	DP_TRY(expect(p, ':', node.at, "this '?' has no ':'"));
	DP_TRY(parse_cond(p, &node.c));
	p->depth--;
	return make(p, node, ret);
}

static struct dp_error *trailing(const struct parser *p)
{
	if (is_op(p, '='))
		return dp_lex_error(p->text, p->t.at, "'=' assigns; compare with '=='");
	if (is_op(p, ')'))
		return dp_lex_error(p->text, p->t.at, "no parenthesis is open here");
	return dp_lex_error(p->text, p->t.at, "expected an operator here");
}

static struct dp_error *begin(struct parser *p, size_t from)
{
	if (strlen(p->text) > TEXT_MAX)
		return dp_lex_error(p->text, TEXT_MAX, "an expression can have at most %d characters", TEXT_MAX);
	return dp_token_next(p->arena, p->text, from, &p->t);
}

struct dp_error *dp_ast_parse(struct dp_arena *arena, const char *text, struct dp_ast **ret)
{
	struct parser p = {.arena = arena, .text = text};
	DP_TRY(begin(&p, 0));
	DP_TRY(parse_cond(&p, ret));
	return p.t.kind == DP_TOKEN_END ? NULL : trailing(&p);
}

struct dp_error *dp_ast_parse_list(struct dp_arena *arena, const char *text, size_t from, struct dp_ast **ret, size_t max,
                                   size_t *n)
{
	struct parser p = {.arena = arena, .text = text};
	DP_TRY(begin(&p, from));
	for (*n = 0;;) {
		if (*n == max)
			return dp_lex_error(text, p.t.at, "more values than the format takes");
		DP_TRY(parse_cond(&p, &ret[*n]));
		++*n;
		if (!is_op(&p, ','))
			break;
		DP_TRY(advance(&p));
	}
	return p.t.kind == DP_TOKEN_END ? NULL : trailing(&p);
}

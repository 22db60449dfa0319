/* SPDX-License-Identifier: MIT */
/*
 * Conditions: precedence climbing over one table of binary operators, recursive descent for the rest. Nesting and the number
 * of nodes are bounded, so that neither this parser nor anything that walks its tree can run out of stack.
 */
#include "probes/expr_internal.h"
#include "probes/lex.h"
#include "probes/registers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, WORD_MAX = 31 };

struct parser {
	const char *text;
	size_t at;
	unsigned nodes, depth;
};

/* Longer spellings first, as the first match counts. Precedence as in C: higher binds tighter. */
static const struct binary {
	const char *text;
	int precedence;
	enum dp_expr_op op;
} binaries[] = {
        {"||", 1, DP_OP_LOR}, {"&&", 2, DP_OP_LAND}, {"==", 6, DP_OP_EQ}, {"!=", 6, DP_OP_NE},
        {"<<", 8, DP_OP_SHL}, {">>", 8, DP_OP_SHR},  {"<=", 7, DP_OP_LE}, {">=", 7, DP_OP_GE},
        {"<", 7, DP_OP_LT},   {">", 7, DP_OP_GT},    {"|", 3, DP_OP_OR},  {"^", 4, DP_OP_XOR},
        {"&", 5, DP_OP_AND},  {"+", 9, DP_OP_ADD},   {"-", 9, DP_OP_SUB}, {"*", 10, DP_OP_MUL},
};

static struct dp_error *parse_binary(struct parser *p, int lowest, struct dp_expr **ret);

struct dp_expr *dp_expr_destroy(struct dp_expr *expr)
{
	if (!expr)
		return NULL;
	dp_expr_destroy(expr->a);
	dp_expr_destroy(expr->b);
	dp_expr_destroy(expr->c);
	free(expr->text);
	free(expr);
	return NULL;
}

static void skip_space(struct parser *p)
{
	while (isspace((unsigned char)p->text[p->at]))
		p->at++;
}

/* A node with these members; `a` and `b` are taken over, also on failure. */
static struct dp_error *make(struct parser *p, struct dp_expr node, struct dp_expr **ret)
{
	struct dp_expr *e = NULL;
	struct dp_error *err = NULL;
	if (++p->nodes > DP_EXPR_MAX_NODES)
		err = dp_lex_error(p->text, p->at, "the condition is too long: at most %u operands and operators",
		                   DP_EXPR_MAX_NODES);
	else if (!(e = malloc(sizeof(*e))))
		err = dp_error(DP_TAG_NOMEM, "out of memory for a condition");
	if (err) {
		dp_expr_destroy(node.a);
		dp_expr_destroy(node.b);
		return err;
	}
	*e = node;
	*ret = e;
	return NULL;
}

static bool is_known(const struct dp_expr *e)
{
	return !e || (e->kind == DP_EXPR_CONST && e->reg != DP_CONST_RIP);
}

/* An operator over constants becomes a constant. */
static struct dp_error *make_operator(struct parser *p, struct dp_expr node, struct dp_expr **ret)
{
	if (!is_known(node.a) || !is_known(node.b))
		return make(p, node, ret);
	struct dp_expr folded = {.kind = DP_EXPR_CONST, .reg = DP_CONST_FOLDED};
	folded.value = dp_expr_apply(node.op, node.a->value, node.b ? node.b->value : 0);
	dp_expr_destroy(node.a);
	dp_expr_destroy(node.b);
	return make(p, folded, ret);
}

/* ---- operands ---- */

static struct dp_error *parse_number(struct parser *p, struct dp_expr **ret)
{
	const char *start = p->text + p->at;
	size_t len = 0;
	uint64_t value = 0;
	while (isalnum((unsigned char)start[len]) || start[len] == '_')
		len++;
	if (!dp_lex_number(start, len, &value))
		return dp_lex_error(p->text, p->at, "not a number below 2^64: 0x... (hexadecimal), 0... (octal) or decimal");
	p->at += len;
	return make(p, (struct dp_expr){.kind = DP_EXPR_CONST, .value = value}, ret);
}

/* "arg0" .. "arg5" by the System V calling convention. */
static const char *argument_register(const char *name)
{
	static const char *const order[] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
	bool is_argument = strlen(name) == 4 && !memcmp(name, "arg", 3) && name[3] >= '0' && name[3] <= '5';
	return is_argument ? order[name[3] - '0'] : name;
}

static struct dp_error *unknown_register(const struct parser *p, const char *name)
{
	uint8_t xmm;
	if (dp_register_xmm(name, &xmm))
		return dp_lex_error(p->text, p->at, "conditions compare general registers only");
	struct dp_buf help;
	dp_buf_init(&help);
	dp_register_suggest(name, true, &help);
	struct dp_error *err = dp_lex_error(p->text, p->at, "no register of that name: %s", dp_buf_str(&help));
	dp_buf_fini(&help);
	return err;
}

static struct dp_error *parse_register(struct parser *p, struct dp_expr **ret)
{
	const char *start = p->text + p->at;
	char name[WORD_MAX + 1];
	size_t sigil = *start == '$', len = 0;
	for (start += sigil; isalnum((unsigned char)start[len]) || start[len] == '_'; len++)
		;
	if (!len)
		return dp_lex_error(p->text, p->at, "'$' needs a register's name behind it");
	size_t kept = len < WORD_MAX ? len : WORD_MAX;
	memcpy(name, start, kept);
	name[kept] = '\0';
	struct dp_expr node = {.kind = DP_EXPR_REG};
	if (!strcmp(name, "rip"))
		node = (struct dp_expr){.kind = DP_EXPR_CONST, .reg = DP_CONST_RIP};
	else if (dp_register_is_flags(name))
		node.kind = DP_EXPR_RFLAGS;
	else if (len > kept || !dp_register_find(argument_register(name), &node.reg, &node.shift, &node.size))
		return unknown_register(p, name);
	p->at += sigil + len;
	return make(p, node, ret);
}

static struct dp_error *parse_parentheses(struct parser *p, struct dp_expr **ret)
{
	struct dp_expr *inner = NULL;
	size_t open = p->at++;
	DP_TRY(parse_binary(p, 1, &inner));
	skip_space(p);
	if (p->text[p->at] != ')') {
		dp_expr_destroy(inner);
		return dp_lex_error(p->text, open, "this parenthesis is not closed");
	}
	p->at++;
	*ret = inner;
	return NULL;
}

static struct dp_error *parse_operand(struct parser *p, struct dp_expr **ret)
{
	char c = p->text[p->at];
	if (isdigit((unsigned char)c))
		return parse_number(p, ret);
	if (isalpha((unsigned char)c) || c == '_' || c == '$')
		return parse_register(p, ret);
	if (c == '(')
		return parse_parentheses(p, ret);
	return dp_lex_error(p->text, p->at, c ? "expected a register, a number or '('" : "the condition ends too early");
}

/* ---- operators ---- */

static bool unary_operator(char c, enum dp_expr_op *op)
{
	*op = c == '!' ? DP_OP_NOT : c == '~' ? DP_OP_COMPL : DP_OP_NEG;
	return c == '!' || c == '~' || c == '-';
}

static struct dp_error *parse_unary_inner(struct parser *p, struct dp_expr **ret)
{
	struct dp_expr node = {.kind = DP_EXPR_UNARY};
	skip_space(p);
	bool plus = p->text[p->at] == '+';
	if (!plus && !unary_operator(p->text[p->at], &node.op))
		return parse_operand(p, ret);
	p->at++;
	if (p->depth >= DEPTH_MAX)
		return dp_lex_error(p->text, p->at, "the condition is nested too deeply");
	p->depth++;
	struct dp_error *err = parse_unary_inner(p, &node.a);
	p->depth--;
	if (err)
		return err;
	if (!plus)
		return make_operator(p, node, ret);
	*ret = node.a;
	return NULL;
}

static const struct binary *peek_binary(struct parser *p)
{
	skip_space(p);
	for (size_t i = 0; i < sizeof(binaries) / sizeof(binaries[0]); i++)
		if (!strncmp(p->text + p->at, binaries[i].text, strlen(binaries[i].text)))
			return &binaries[i];
	return NULL;
}

static bool is_large_literal(const struct dp_expr *e)
{
	return e->kind == DP_EXPR_CONST && e->reg == DP_CONST_LITERAL && e->value > INT64_MAX;
}

/* Order comparisons are signed, unless a side can only be meant unsigned. */
static enum dp_expr_op choose_sign(enum dp_expr_op op, const struct dp_expr *a, const struct dp_expr *b)
{
	bool order = op >= DP_OP_LT && op <= DP_OP_GE;
	if (!order || (!is_large_literal(a) && !is_large_literal(b)))
		return op;
	return op + (DP_OP_ULT - DP_OP_LT);
}

static struct dp_error *parse_operators(struct parser *p, int lowest, struct dp_expr **left)
{
	const struct binary *binary;
	while ((binary = peek_binary(p)) && binary->precedence >= lowest) {
		struct dp_expr node = {.kind = DP_EXPR_BINARY, .a = *left};
		p->at += strlen(binary->text);
		DP_TRY(parse_binary(p, binary->precedence + 1, &node.b));
		node.op = choose_sign(binary->op, node.a, node.b);
		*left = NULL; /* make_operator() takes it over */
		DP_TRY(make_operator(p, node, left));
	}
	return NULL;
}

static struct dp_error *parse_binary(struct parser *p, int lowest, struct dp_expr **ret)
{
	struct dp_expr *left = NULL;
	if (p->depth >= DEPTH_MAX)
		return dp_lex_error(p->text, p->at, "the condition is nested too deeply");
	p->depth++;
	struct dp_error *err = parse_unary_inner(p, &left);
	if (!err)
		err = parse_operators(p, lowest, &left);
	p->depth--;
	if (err)
		dp_expr_destroy(left);
	else
		*ret = left;
	return err;
}

static struct dp_error *trailing(const struct parser *p)
{
	switch (p->text[p->at]) {
	case '=':
		return dp_lex_error(p->text, p->at, "'=' assigns; compare with '=='");
	case ')':
		return dp_lex_error(p->text, p->at, "no parenthesis is open here");
	case '/':
	case '%':
		return dp_lex_error(p->text, p->at, "conditions cannot divide");
	default:
		return dp_lex_error(p->text, p->at, "expected an operator here");
	}
}

struct dp_error *dp_expr_parse(const char *text, struct dp_expr **ret)
{
	struct parser p = {.text = text};
	struct dp_expr *expr = NULL;
	DP_TRY(parse_binary(&p, 1, &expr));
	skip_space(&p);
	if (text[p.at]) {
		dp_expr_destroy(expr);
		return trailing(&p);
	}
	*ret = expr;
	return NULL;
}

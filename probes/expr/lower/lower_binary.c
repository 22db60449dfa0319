/* SPDX-License-Identifier: MIT */
/*
 * Lowers operators with two or three operands. A literal number has no type until it meets a value with one; two literals are
 * computed in 64 bits. A register is a signed 64-bit word with any number.
 */
#include "probes/record/lex.h"
#include "probes/expr/scope/scope_internal.h"

#include <string.h>

struct pair {
	struct dp_operand a, b;
};

static bool is_comparison(int op)
{
	return op == DP_AST_EQ || op == DP_AST_NE || op == '<' || op == '>' || op == DP_AST_LE || op == DP_AST_GE;
}

static bool is_order(int op)
{
	return op == '<' || op == '>' || op == DP_AST_LE || op == DP_AST_GE;
}

static bool is_shift(int op)
{
	return op == DP_AST_SHL || op == DP_AST_SHR;
}

static enum dp_expr_op integer_op(int op, bool is_signed)
{
	switch (op) {
	case '*':
		return DP_OP_MUL;
	case '+':
		return DP_OP_ADD;
	case '-':
		return DP_OP_SUB;
	case '&':
		return DP_OP_AND;
	case '^':
		return DP_OP_XOR;
	case '|':
		return DP_OP_OR;
	case DP_AST_SHL:
		return DP_OP_SHL;
	case DP_AST_SHR:
		return is_signed ? DP_OP_SHR : DP_OP_LSHR;
	case '/':
		return is_signed ? DP_OP_DIV : DP_OP_UDIV;
	case '%':
		return is_signed ? DP_OP_MOD : DP_OP_UMOD;
	case DP_AST_EQ:
		return DP_OP_EQ;
	case DP_AST_NE:
		return DP_OP_NE;
	case '<':
		return is_signed ? DP_OP_LT : DP_OP_ULT;
	case '>':
		return is_signed ? DP_OP_GT : DP_OP_UGT;
	case DP_AST_LE:
		return is_signed ? DP_OP_LE : DP_OP_ULE;
	case DP_AST_GE:
		return is_signed ? DP_OP_GE : DP_OP_UGE;
	case DP_AST_AND:
		return DP_OP_LAND;
	default:
		return DP_OP_LOR;
	}
}

static bool float_op(int op, enum dp_expr_op *ret)
{
	static const struct {
		int op;
		enum dp_expr_op to;
	} table[] = {{'+', DP_OP_FADD},      {'-', DP_OP_FSUB},      {'*', DP_OP_FMUL}, {'/', DP_OP_FDIV},
	             {DP_AST_EQ, DP_OP_FEQ}, {DP_AST_NE, DP_OP_FNE}, {'<', DP_OP_FLT},  {'>', DP_OP_FGT},
	             {DP_AST_LE, DP_OP_FLE}, {DP_AST_GE, DP_OP_FGE}};
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].op == op) {
			*ret = table[i].to;
			return true;
		}
	return false;
}

/* C has no literal for the least int: -2147483648 is a long. */
static bool is_least(const struct dp_ast *ast, uint64_t v)
{
	return ast->kind == DP_AST_UNARY && ast->a->kind == DP_AST_NUMBER && (int64_t)v == INT32_MIN;
}

const struct dp_ctype *dp_literal_type(const struct dp_scope *s, const struct dp_ast *ast, const struct dp_operand *o)
{
	uint64_t v = 0;
	const bool plain = ast->kind == DP_AST_NUMBER, based = plain && s->text[ast->at] == '0';
	dp_build_is_const(o->value, &v);
	if (plain && ast->is_unsigned)
		return &dp_ctype_ulong;
	if ((int64_t)v >= INT32_MIN && (int64_t)v <= INT32_MAX && !is_least(ast, v))
		return &dp_ctype_int;
	return based && v <= UINT32_MAX ? &dp_ctype_uint : &dp_ctype_long;
}

static void give_type(const struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *o, const struct dp_operand *other,
                      int op)
{
	if (!o->is_constant || other->is_constant)
		return;
	uint64_t v = 0;
	dp_build_is_const(o->value, &v);
	const bool large = o->is_literal && v > INT64_MAX;
	o->type = other->type->is_word ? (large && is_order(op) ? &dp_ctype_ulong : &dp_ctype_word) : dp_literal_type(s, ast, o);
	o->is_constant = false;
}

const struct dp_ctype *dp_promoted(const struct dp_operand *o)
{
	const struct dp_ctype *t = o->type;
	uint64_t v;
	if (o->is_enumerator && dp_build_is_const(o->value, &v) && (int64_t)v == (int32_t)v)
		return &dp_ctype_int;
	if (t->kind == DP_CTYPE_INT && (t->size < 4 || t->is_bool || (o->bits && o->bits < 32)))
		return &dp_ctype_int;
	if (t->is_enum)
		return t->size == 4 ? (t->is_signed ? &dp_ctype_int : &dp_ctype_uint) : t->is_signed ? &dp_ctype_long : &dp_ctype_ulong;
	return t;
}

/* The usual arithmetic conversions, C11, 6.3.1.8. */
static const struct dp_ctype *common(const struct dp_operand *a, const struct dp_operand *b)
{
	const struct dp_ctype *x = dp_promoted(a), *y = dp_promoted(b);
	if (x->kind == DP_CTYPE_FLOAT || y->kind == DP_CTYPE_FLOAT) {
		const bool wide = (x->kind == DP_CTYPE_FLOAT && x->size == 8) || (y->kind == DP_CTYPE_FLOAT && y->size == 8);
		return wide ? &dp_ctype_double : &dp_ctype_float;
	}
	if (x->size != y->size) {
		return x->size > y->size ? x : y;
	}
	const bool is_signed = x->is_signed && y->is_signed;
	if (x->size == 8)
		return !is_signed ? &dp_ctype_ulong : x->is_word || y->is_word ? &dp_ctype_word : &dp_ctype_long;
	return is_signed ? &dp_ctype_int : &dp_ctype_uint;
}

static struct dp_error *constants(struct dp_scope *s, const struct dp_ast *ast, struct pair *p, struct dp_operand *ret)
{
	uint64_t x = 0, y = 0;
	dp_build_is_const(p->a.value, &x);
	dp_build_is_const(p->b.value, &y);
	const bool large = (p->a.is_literal && x > INT64_MAX) || (p->b.is_literal && y > INT64_MAX);
	if ((ast->op == '/' || ast->op == '%') && !y)
		return dp_lex_error(s->text, ast->at, "division by 0");
	*ret = (struct dp_operand){.type = &dp_ctype_long, .is_constant = true};
	ret->value = dp_build_binary(&s->arena, integer_op(ast->op, !large || is_shift(ast->op)), p->a.value, p->b.value);
	return NULL;
}

static struct dp_error *pointer_arithmetic(struct dp_scope *s, const struct dp_ast *ast, struct pair *p, struct dp_operand *ret)
{
	struct dp_arena *a = &s->arena;
	const bool left = p->a.type->kind == DP_CTYPE_POINTER, right = p->b.type->kind == DP_CTYPE_POINTER;
	const struct dp_operand *pointer = left ? &p->a : &p->b, *number = left ? &p->b : &p->a;
	const struct dp_ctype *to = dp_ctype_to(pointer->type);
	const uint64_t size = to->size ? to->size : 1;
	if (is_comparison(ast->op)) {
		*ret = (struct dp_operand){.type = &dp_ctype_int};
		ret->value = dp_build_binary(a, integer_op(ast->op, false), p->a.value, p->b.value);
		return NULL;
	}
	if (left && right && ast->op == '-') {
		*ret = (struct dp_operand){.type = &dp_ctype_long};
		ret->value = dp_build_binary(a, DP_OP_DIV, dp_build_binary(a, DP_OP_SUB, p->a.value, p->b.value),
		                             dp_build_const(a, size));
		return NULL;
	}
	if ((left && right) || number->type->kind != DP_CTYPE_INT || !(ast->op == '+' || (ast->op == '-' && left)))
		return dp_lex_error(s->text, ast->at, "pointers take + and - with numbers, - and comparisons with pointers");
	struct dp_expr *bytes = dp_build_binary(a, DP_OP_MUL, number->value, dp_build_const(a, size));
	*ret = (struct dp_operand){.type = pointer->type};
	ret->value = dp_build_binary(a, ast->op == '+' ? DP_OP_ADD : DP_OP_SUB, pointer->value, bytes);
	return NULL;
}

static struct dp_error *float_arithmetic(struct dp_scope *s, const struct dp_ast *ast, struct pair *p,
                                         const struct dp_ctype *type, struct dp_operand *ret)
{
	enum dp_expr_op op;
	if (!float_op(ast->op, &op))
		return dp_lex_error(s->text, ast->at, "this operator needs integers");
	*ret = (struct dp_operand){.type = is_comparison(ast->op) ? &dp_ctype_int : type};
	ret->value = dp_build_binary(&s->arena, op, p->a.value, p->b.value);
	if (!is_comparison(ast->op) && type->size == sizeof(float))
		ret->value = dp_build_unary(&s->arena, DP_OP_F2D, dp_build_unary(&s->arena, DP_OP_D2F, ret->value));
	return NULL;
}

static struct dp_error *shift(struct dp_scope *s, const struct dp_ast *ast, struct pair *p, struct dp_operand *ret)
{
	struct dp_arena *a = &s->arena;
	const struct dp_ctype *type = dp_promoted(&p->a);
	if (type->kind != DP_CTYPE_INT || p->b.type->kind != DP_CTYPE_INT)
		return dp_lex_error(s->text, ast->at, "shifts need integers");
	struct dp_expr *count = p->b.value;
	if (type->size < 8)
		count = dp_build_binary(a, DP_OP_AND, count, dp_build_const(a, 31));
	*ret = (struct dp_operand){.type = type};
	ret->value = dp_build_binary(a, integer_op(ast->op, type->is_signed), p->a.value, count);
	ret->value = dp_build_cast(a, ret->value, (uint8_t)type->size, type->is_signed);
	return NULL;
}

static struct dp_error *arithmetic(struct dp_scope *s, const struct dp_ast *ast, struct pair *p, struct dp_operand *ret)
{
	if (p->a.type->kind == DP_CTYPE_POINTER || p->b.type->kind == DP_CTYPE_POINTER)
		return pointer_arithmetic(s, ast, p, ret);
	if (is_shift(ast->op))
		return shift(s, ast, p, ret);
	const struct dp_ctype *type = common(&p->a, &p->b);
	p->a = dp_lower_convert(s, p->a, type);
	p->b = dp_lower_convert(s, p->b, type);
	if (type->kind == DP_CTYPE_FLOAT)
		return float_arithmetic(s, ast, p, type, ret);
	*ret = (struct dp_operand){.type = is_comparison(ast->op) ? &dp_ctype_int : type};
	ret->value = dp_build_binary(&s->arena, integer_op(ast->op, type->is_signed), p->a.value, p->b.value);
	if (!is_comparison(ast->op))
		ret->value = dp_build_cast(&s->arena, ret->value, (uint8_t)type->size, type->is_signed);
	return NULL;
}

static struct dp_error *logic(struct dp_scope *s, const struct dp_ast *ast, struct pair *p, struct dp_operand *ret)
{
	p->a = dp_lower_truth(s, p->a);
	p->b = dp_lower_truth(s, p->b);
	*ret = (struct dp_operand){.type = &dp_ctype_int, .is_constant = p->a.is_constant && p->b.is_constant};
	ret->value = dp_build_binary(&s->arena, integer_op(ast->op, true), p->a.value, p->b.value);
	return NULL;
}

static struct dp_error *choice(struct dp_scope *s, const struct dp_ast *ast, struct pair *p, struct dp_operand *ret)
{
	struct dp_operand c;
	DP_TRY(dp_lower(s, ast->a, &c));
	DP_TRY(dp_lower_value(s, ast->a, &c));
	if (c.string || c.is_comm || p->a.string || p->b.string || p->a.is_comm || p->b.is_comm || p->a.is_counted ||
	    p->b.is_counted)
		return dp_lex_error(s->text, ast->at, "?: takes numbers and pointers");
	c = dp_lower_truth(s, c);
	if (p->a.is_constant && p->b.is_constant) {
		p->a.type = dp_literal_type(s, ast->b, &p->a);
		p->b.type = dp_literal_type(s, ast->c, &p->b);
	}
	const struct dp_ctype *type = p->a.type->kind == DP_CTYPE_POINTER   ? p->a.type
	                              : p->b.type->kind == DP_CTYPE_POINTER ? p->b.type
	                                                                    : common(&p->a, &p->b);
	*ret = (struct dp_operand){.type = type, .absent = c.absent ? c.absent : p->a.absent ? p->a.absent : p->b.absent};
	if (ret->absent)
		return NULL;
	const struct dp_operand x = dp_lower_convert(s, p->a, type), y = dp_lower_convert(s, p->b, type);
	if (!c.value || !x.value || !y.value)
		return dp_error_nomem();
	ret->value = dp_build(&s->arena, (struct dp_expr){.kind = DP_EXPR_COND, .c = c.value, .a = x.value, .b = y.value});
	return NULL;
}

static struct dp_error *operand(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	DP_TRY(dp_lower(s, ast, ret));
	return dp_lower_counted(s, ret) ? NULL : dp_lower_value(s, ast, ret);
}

static struct dp_error *combine(struct dp_scope *s, const struct dp_ast *ast, struct pair *p, struct dp_operand *ret)
{
	if (p->a.string || p->b.string)
		return dp_lower_compare_string(s, ast, &p->a, &p->b, ret);
	if (p->a.is_counted || p->b.is_counted)
		return dp_lex_error(s->text, ast->at, "a string is compared with a text in quotes: s == \"GET\", s =~ \"*.php\"");
	if (p->a.is_comm || p->b.is_comm || ast->op == DP_AST_MATCH)
		return dp_lex_error(s->text, ast->at, "the other side must be a string: comm == \"name\"");
	if (p->a.absent || p->b.absent) {
		*ret = (struct dp_operand){.type = &dp_ctype_int, .absent = p->a.absent ? p->a.absent : p->b.absent};
		return NULL;
	}
	if (ast->op == DP_AST_AND || ast->op == DP_AST_OR)
		return logic(s, ast, p, ret);
	if (p->a.is_constant && p->b.is_constant)
		return constants(s, ast, p, ret);
	return arithmetic(s, ast, p, ret);
}

struct dp_error *dp_lower_binary(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	const struct dp_ast *left = ast->kind == DP_AST_COND ? ast->b : ast->a,
	                    *right = ast->kind == DP_AST_COND ? ast->c : ast->b;
	struct pair p;
	DP_TRY(operand(s, left, &p.a));
	DP_TRY(operand(s, right, &p.b));
	give_type(s, left, &p.a, &p.b, ast->op);
	give_type(s, right, &p.b, &p.a, ast->op);
	return ast->kind == DP_AST_COND ? choice(s, ast, &p, ret) : combine(s, ast, &p, ret);
}

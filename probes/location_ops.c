/* SPDX-License-Identifier: MIT */
/* What location expressions compute: the stack, operators, and the base types of DWARF 5. */
#include "probes/location_machine.h"

#include <dwarf.h>

enum { STACK = DP_MACHINE_STACK, WORD = DP_MACHINE_WORD };

void dp_machine_fail(struct dp_machine *m, const char *why)
{
	if (!m->absent)
		m->absent = why;
}

void dp_machine_push_typed(struct dp_machine *m, struct dp_expr *e, uint8_t size, bool is_signed)
{
	if (m->n >= STACK || !e) {
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	m->stack[m->n++] = (struct dp_machine_entry){e, size, is_signed};
}

void dp_machine_push(struct dp_machine *m, struct dp_expr *e)
{
	dp_machine_push_typed(m, e, 0, false);
}

struct dp_machine_entry dp_machine_pop(struct dp_machine *m)
{
	if (m->n)
		return m->stack[--m->n];
	dp_machine_fail(m, DP_ABSENT_UNKNOWN);
	return (struct dp_machine_entry){.expr = NULL};
}

/* ---- base types ------------------------------------------------------------------------------------------------------ */

/* Integers only: what is computed with floats in registers is rare, and said not to be there. */
static bool base_type(Dwarf_Die *die, uint8_t *size, bool *is_signed)
{
	uint64_t encoding = 0, bytes = 0;
	if (dwarf_tag(die) != DW_TAG_base_type || !dp_die_unsigned(die, DW_AT_encoding, &encoding) ||
	    !dp_die_unsigned(die, DW_AT_byte_size, &bytes))
		return false;
	*is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	*size = (uint8_t)bytes;
	const bool integer = *is_signed || encoding == DW_ATE_unsigned || encoding == DW_ATE_unsigned_char ||
	                     encoding == DW_ATE_boolean || encoding == DW_ATE_address;
	return integer && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
}

static bool operand_type(struct dp_machine *m, Dwarf_Op *op, uint8_t *size, bool *is_signed)
{
	Dwarf_Die die;
	if (m->attr && !dwarf_getlocation_die(m->attr, op, &die) && base_type(&die, size, is_signed))
		return true;
	dp_machine_fail(m, DP_ABSENT_UNKNOWN);
	return false;
}

void dp_machine_convert(struct dp_machine *m, Dwarf_Op *op)
{
	struct dp_machine_entry e = dp_machine_pop(m);
	uint8_t size = 0;
	bool is_signed = false;
	if (op->number && !operand_type(m, op, &size, &is_signed))
		return;
	dp_machine_push_typed(m, size ? dp_build_cast(m->a, e.expr, size, is_signed) : e.expr, size, is_signed);
}

void dp_machine_typed_register(struct dp_machine *m, Dwarf_Op *op)
{
	uint8_t size;
	bool is_signed;
	if (operand_type(m, op, &size, &is_signed))
		dp_machine_push_typed(m, dp_build_cast(m->a, dp_location_register(m->s, op->number, WORD), size, is_signed), size,
		                      is_signed);
}

/* ---- operators -------------------------------------------------------------------------------------------------------- */

static void deref(struct dp_machine *m, unsigned size)
{
	if (size != 1 && size != 2 && size != 4 && size != 8)
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
	else
		dp_machine_push(m, dp_build_load(m->a, dp_machine_pop(m).expr, (uint8_t)size, false));
}

static bool binary_operator(unsigned atom, bool is_signed, enum dp_expr_op *ret)
{
	static const struct {
		uint8_t atom;
		enum dp_expr_op generic, typed_unsigned;
	} table[] = {
	        {DW_OP_and, DP_OP_AND, DP_OP_AND},  {DW_OP_or, DP_OP_OR, DP_OP_OR},      {DW_OP_xor, DP_OP_XOR, DP_OP_XOR},
	        {DW_OP_plus, DP_OP_ADD, DP_OP_ADD}, {DW_OP_minus, DP_OP_SUB, DP_OP_SUB}, {DW_OP_mul, DP_OP_MUL, DP_OP_MUL},
	        {DW_OP_div, DP_OP_DIV, DP_OP_UDIV}, {DW_OP_shl, DP_OP_SHL, DP_OP_SHL},   {DW_OP_shr, DP_OP_LSHR, DP_OP_LSHR},
	        {DW_OP_shra, DP_OP_SHR, DP_OP_SHR}, {DW_OP_eq, DP_OP_EQ, DP_OP_EQ},      {DW_OP_ne, DP_OP_NE, DP_OP_NE},
	        {DW_OP_lt, DP_OP_LT, DP_OP_ULT},    {DW_OP_le, DP_OP_LE, DP_OP_ULE},     {DW_OP_gt, DP_OP_GT, DP_OP_UGT},
	        {DW_OP_ge, DP_OP_GE, DP_OP_UGE},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].atom == atom) {
			*ret = is_signed ? table[i].generic : table[i].typed_unsigned;
			return true;
		}
	*ret = is_signed ? DP_OP_MOD : DP_OP_UMOD;
	return atom == DW_OP_mod;
}

/* The generic type is signed but for mod and shr (DWARF 5, 2.5.1.4). */
static void binary(struct dp_machine *m, unsigned atom)
{
	enum dp_expr_op op;
	const struct dp_machine_entry b = dp_machine_pop(m), a = dp_machine_pop(m);
	const bool is_signed = a.size ? a.is_signed : atom != DW_OP_mod;
	const bool shift = atom == DW_OP_shl || atom == DW_OP_shr || atom == DW_OP_shra;
	uint64_t count;
	if (!binary_operator(atom, is_signed, &op) || (shift && !(dp_build_is_const(b.expr, &count) && count < 64))) {
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	struct dp_expr *left = a.size && atom == DW_OP_shr ? dp_build_cast(m->a, a.expr, a.size, false) : a.expr;
	struct dp_expr *e = dp_build_binary(m->a, op, left, b.expr);
	const bool compares = atom >= DW_OP_eq && atom <= DW_OP_ne;
	if (compares)
		dp_machine_push(m, e);
	else
		dp_machine_push_typed(m, a.size ? dp_build_cast(m->a, e, a.size, a.is_signed) : e, a.size, a.is_signed);
}

static void unary(struct dp_machine *m, unsigned atom)
{
	const struct dp_machine_entry e = dp_machine_pop(m);
	struct dp_expr *x = dp_build_unary(m->a, atom == DW_OP_not ? DP_OP_COMPL : DP_OP_NEG, e.expr);
	if (atom == DW_OP_abs) {
		struct dp_expr *negative = dp_build_binary(m->a, DP_OP_LT, e.expr, dp_build_const(m->a, 0));
		x = x && negative ? dp_build(m->a, (struct dp_expr){.kind = DP_EXPR_COND, .c = negative, .a = x, .b = e.expr})
		                  : NULL;
	}
	dp_machine_push_typed(m, e.size ? dp_build_cast(m->a, x, e.size, e.is_signed) : x, e.size, e.is_signed);
}

static void shuffle(struct dp_machine *m, const Dwarf_Op *op)
{
	const size_t need = op->atom == DW_OP_over || op->atom == DW_OP_swap ? 2 : op->atom == DW_OP_rot ? 3 : 1;
	const size_t index = op->atom == DW_OP_over ? 1 : op->atom == DW_OP_pick ? (size_t)op->number : 0;
	if (m->n < need || m->n <= index) {
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	struct dp_machine_entry *top = &m->stack[m->n - 1], e = *top;
	switch (op->atom) {
	case DW_OP_drop:
		m->n--;
		break;
	case DW_OP_swap:
		*top = top[-1];
		top[-1] = e;
		break;
	case DW_OP_rot:
		*top = top[-1];
		top[-1] = top[-2];
		top[-2] = e;
		break;
	default:
		e = m->stack[m->n - 1 - index];
		dp_machine_push_typed(m, e.expr, e.size, e.is_signed);
	}
}

bool dp_machine_operator(struct dp_machine *m, Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_over:
	case DW_OP_pick:
	case DW_OP_swap:
	case DW_OP_rot:
		shuffle(m, op);
		return true;
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
		unary(m, op->atom);
		return true;
	case DW_OP_plus_uconst:
		dp_machine_push(m, dp_build_add(m->a, dp_machine_pop(m).expr, op->number));
		return true;
	case DW_OP_deref:
		deref(m, WORD);
		return true;
	case DW_OP_deref_size:
		deref(m, (unsigned)op->number);
		return true;
	case DW_OP_nop:
		return true;
	case DW_OP_and:
	case DW_OP_div:
	case DW_OP_minus:
	case DW_OP_mod:
	case DW_OP_mul:
	case DW_OP_or:
	case DW_OP_plus:
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
	case DW_OP_xor:
	case DW_OP_eq:
	case DW_OP_ge:
	case DW_OP_gt:
	case DW_OP_le:
	case DW_OP_lt:
	case DW_OP_ne:
		binary(m, op->atom);
		return true;
	default:
		return false;
	}
}

/* SPDX-License-Identifier: MIT */
/* DWARF's stack, arithmetic, logical and comparison operators. */
#include "probes/dwarf/dwarf_operation.h"

void dp_dwarf_shuffle(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	const uint64_t index = op->atom == DW_OP_over ? 1 : op->atom == DW_OP_pick ? op->number : 0;
	struct dp_dwarf_item *top = &m->stack[m->n - 1], e = *top;
	if (m->n <= index) {
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
	} else if (op->atom == DW_OP_drop) {
		m->n--;
	} else if (op->atom == DW_OP_swap) {
		*top = top[-1];
		top[-1] = e;
	} else if (op->atom == DW_OP_rot) {
		*top = top[-1];
		top[-1] = top[-2];
		top[-2] = e;
	} else {
		dp_dwarf_push_item(m, NULL, top[-(ptrdiff_t)index]);
	}
}

static void push_applied(struct dp_dwarf_machine *m, enum dp_expr_op op, struct dp_dwarf_item a, union dp_dwarf_value b)
{
	const char *why = m->back->apply(m, op, (union dp_dwarf_value[2]){a.value, b}, &a.value);
	dp_dwarf_push_typed(m, why, a);
}

/* The generic type is signed, except for mod and shr (2.5.1.4). */
void dp_dwarf_binary(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	const struct dp_dwarf_operation *o = &dp_dwarf_operations[op->atom];
	const struct dp_dwarf_item b = dp_dwarf_pop(m);
	struct dp_dwarf_item a = dp_dwarf_pop(m);
	const bool is_signed = a.type.size ? a.type.is_signed : op->atom != DW_OP_mod;
	const bool divides = op->atom == DW_OP_div || op->atom == DW_OP_mod;
	uint64_t by;
	if (a.type.is_real || b.type.is_real) {
		dp_dwarf_real_binary(m, o->of_real, a, b);
		return;
	}
	if (divides && m->back->is_number(m, b.value, &by) && !by) {
		dp_dwarf_fail(m, DP_ABSENT_DIVIDES);
		return;
	}
	if (op->atom >= DW_OP_eq && op->atom <= DW_OP_ne)
		a.type = (struct dp_dwarf_type){0};
	push_applied(m, is_signed ? o->of_signed : o->of_unsigned, a, b.value);
}

/* Shifting by more bits than the value has gives 0, or the sign. */
void dp_dwarf_shift(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	const struct dp_dwarf_item b = dp_dwarf_pop(m);
	struct dp_dwarf_item a = dp_dwarf_pop(m);
	const struct dp_dwarf_type type = a.type;
	const char *why = NULL;
	union dp_dwarf_value count;
	uint64_t by;
	if (type.is_real || b.type.is_real || !m->back->is_number(m, b.value, &by)) {
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	if (by >= 64 && op->atom != DW_OP_shra) {
		why = m->back->constant(m, 0, &count);
		dp_dwarf_push(m, why, count);
		return;
	}
	/* Right shifts treat the value as signed or unsigned, whatever its type. */
	const struct dp_dwarf_type as = {.size = type.size, .is_signed = op->atom == DW_OP_shra};
	if (type.size && op->atom != DW_OP_shl)
		why = m->back->cast(m, a.value, as, &a.value);
	why = why ? why : m->back->constant(m, by < 63 ? by : 63, &count);
	if (why)
		dp_dwarf_fail(m, why);
	else
		push_applied(m, dp_dwarf_operations[op->atom].of_signed, a, count);
}

/* With s = x >> 63: (x ^ s) - s. */
static const char *absolute(struct dp_dwarf_machine *m, union dp_dwarf_value *v)
{
	union dp_dwarf_value operand[2] = {*v};
	const char *why = m->back->constant(m, 63, &operand[1]);
	why = why ? why : m->back->apply(m, DP_OP_SHR, operand, &operand[1]);
	why = why ? why : m->back->apply(m, DP_OP_XOR, operand, &operand[0]);
	return why ? why : m->back->apply(m, DP_OP_SUB, operand, v);
}

/* Changes only the sign bit. */
static const char *real_sign(struct dp_dwarf_machine *m, unsigned atom, struct dp_dwarf_item *a)
{
	union dp_dwarf_value operand[2] = {a->value};
	const uint64_t sign = UINT64_C(1) << (8 * a->type.size - 1);
	if (atom == DW_OP_not)
		return DP_ABSENT_UNKNOWN;
	const char *why = m->back->constant(m, atom == DW_OP_neg ? sign : sign - 1, &operand[1]);
	return why ? why : m->back->apply(m, atom == DW_OP_neg ? DP_OP_XOR : DP_OP_AND, operand, &a->value);
}

void dp_dwarf_unary(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	struct dp_dwarf_item a = dp_dwarf_pop(m);
	const char *why = NULL;
	if (a.type.is_real)
		why = real_sign(m, op->atom, &a);
	else if (op->atom != DW_OP_abs)
		why = m->back->apply(m, dp_dwarf_operations[op->atom].of_signed, (union dp_dwarf_value[2]){a.value}, &a.value);
	else if (!a.type.size || a.type.is_signed)
		why = absolute(m, &a.value);
	dp_dwarf_push_typed(m, why, a);
}

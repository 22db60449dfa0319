/* SPDX-License-Identifier: MIT */
/* What DWARF's expressions compute: the stack, operators, base types. */
#include "pmodules/frames_machine.h"

#include <dwarf.h>
#include <string.h>

void dp_eval_fail(struct dp_eval_machine *m, const char *why)
{
	if (!m->why)
		m->why = why;
}

void dp_eval_push_typed(struct dp_eval_machine *m, uint64_t v, uint8_t size, bool is_signed)
{
	if (size && size < 8) {
		const unsigned unused = 64 - 8u * size;
		v = is_signed ? (uint64_t)((int64_t)(v << unused) >> unused) : v << unused >> unused;
	}
	if (m->n >= DP_EVAL_STACK)
		dp_eval_fail(m, DP_WHY_UNKNOWN);
	else
		m->stack[m->n++] = (struct dp_eval_item){.v = v, .size = size, .is_signed = is_signed};
}

void dp_eval_push_opaque(struct dp_eval_machine *m, const void *bytes, size_t n)
{
	uint64_t v = 0;
	if (!n || n > sizeof(v)) {
		dp_eval_fail(m, DP_WHY_UNKNOWN);
		return;
	}
	memcpy(&v, bytes, n);
	dp_eval_push(m, v);
	if (!m->why)
		m->stack[m->n - 1].is_opaque = true;
}

void dp_eval_push(struct dp_eval_machine *m, uint64_t v)
{
	dp_eval_push_typed(m, v, 0, false);
}

struct dp_eval_item dp_eval_pop(struct dp_eval_machine *m)
{
	if (m->n)
		return m->stack[--m->n];
	dp_eval_fail(m, DP_WHY_UNKNOWN);
	return (struct dp_eval_item){0};
}

bool dp_eval_reg(struct dp_eval_machine *m, uint64_t number, uint64_t *ret)
{
	const struct dp_fstate *f = m->e->frame;
	if (!f || number >= DP_SNAP_REGS || !(f->regs.known >> number & 1)) {
		dp_eval_fail(m, DP_WHY_OPTIMIZED);
		return false;
	}
	*ret = f->regs.value[number];
	return true;
}

void dp_eval_load(struct dp_eval_machine *m, uint64_t size)
{
	uint64_t v = 0;
	const struct dp_eval_item a = dp_eval_pop(m);
	if (m->why)
		return;
	if (!size || size > 8)
		dp_eval_fail(m, DP_WHY_UNKNOWN);
	else if (!dp_world_get(m->e->w, a.v, &v, size, NULL))
		dp_eval_fail(m, "the memory that says where it is cannot be read");
	else
		dp_eval_push(m, v);
}

/* ---- base types -------------------------------------------------------------------------------------------------------------
 */

static bool operand_type(struct dp_eval_machine *m, const Dwarf_Op *op, uint8_t *size, bool *is_signed)
{
	Dwarf_Die die;
	Dwarf_Attribute attr;
	Dwarf_Word encoding = 0, bytes = 0;
	if (m->e->attr && !dwarf_getlocation_die(m->e->attr, op, &die) && dwarf_tag(&die) == DW_TAG_base_type &&
	    dwarf_attr(&die, DW_AT_encoding, &attr) && !dwarf_formudata(&attr, &encoding) &&
	    dwarf_attr(&die, DW_AT_byte_size, &attr) && !dwarf_formudata(&attr, &bytes)) {
		*is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
		*size = (uint8_t)bytes;
		const bool integer = *is_signed || encoding == DW_ATE_unsigned || encoding == DW_ATE_unsigned_char ||
		                     encoding == DW_ATE_boolean || encoding == DW_ATE_address;
		if (integer && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8))
			return true;
	}
	dp_eval_fail(m, DP_WHY_UNKNOWN);
	return false;
}

void dp_eval_convert(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	const struct dp_eval_item a = dp_eval_pop(m);
	uint8_t size = 0;
	bool is_signed = false;
	if (a.is_opaque)
		dp_eval_fail(m, DP_WHY_UNKNOWN);
	if (!op->number || operand_type(m, op, &size, &is_signed))
		dp_eval_push_typed(m, a.v, size, is_signed);
}

/* A double in a vector register. */
static bool vector_register(struct dp_eval_machine *m, uint64_t number)
{
	const struct dp_fstate *f = m->e->frame;
	if (number < 17 || number >= 33)
		return false;
	if (f && f->xmm)
		dp_eval_push_opaque(m, f->xmm[number - 17], sizeof(uint64_t));
	else
		dp_eval_fail(m, DP_WHY_OPTIMIZED);
	return true;
}

void dp_eval_typed_register(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	uint8_t size;
	bool is_signed;
	uint64_t v;
	if (vector_register(m, op->number))
		return;
	if (operand_type(m, op, &size, &is_signed) && dp_eval_reg(m, op->number, &v))
		dp_eval_push_typed(m, v, size, is_signed);
}

/* ---- operators --------------------------------------------------------------------------------------------------------------
 */

static uint64_t shift(unsigned atom, struct dp_eval_item a, uint64_t by)
{
	const unsigned width = a.size ? a.size * 8u : 64;
	uint64_t v = a.v;
	if (atom == DW_OP_shl)
		return by < 64 ? v << by : 0;
	if (atom == DW_OP_shra)
		return (uint64_t)((int64_t)v >> (by < 63 ? by : 63));
	if (width < 64)
		v &= (UINT64_C(1) << width) - 1;
	return by < 64 ? v >> by : 0;
}

static bool divide(unsigned atom, struct dp_eval_item a, struct dp_eval_item b, uint64_t *ret)
{
	const bool is_signed = a.size ? a.is_signed : atom == DW_OP_div;
	if (!b.v)
		return false;
	if (is_signed && b.v == UINT64_MAX)
		*ret = atom == DW_OP_div ? 0 - a.v : 0;
	else if (is_signed)
		*ret = atom == DW_OP_div ? (uint64_t)((int64_t)a.v / (int64_t)b.v) : (uint64_t)((int64_t)a.v % (int64_t)b.v);
	else
		*ret = atom == DW_OP_div ? a.v / b.v : a.v % b.v;
	return true;
}

static bool compare(unsigned atom, struct dp_eval_item a, struct dp_eval_item b)
{
	const bool is_unsigned = a.size && !a.is_signed;
	const int sign = a.v == b.v ? 0 : is_unsigned ? (a.v < b.v ? -1 : 1) : ((int64_t)a.v < (int64_t)b.v ? -1 : 1);
	switch (atom) {
	case DW_OP_eq:
		return sign == 0;
	case DW_OP_ne:
		return sign != 0;
	case DW_OP_lt:
		return sign < 0;
	case DW_OP_le:
		return sign <= 0;
	case DW_OP_gt:
		return sign > 0;
	default:
		return sign >= 0;
	}
}

static void binary(struct dp_eval_machine *m, unsigned atom)
{
	const struct dp_eval_item b = dp_eval_pop(m), a = dp_eval_pop(m);
	uint64_t v = 0;
	if (a.is_opaque || b.is_opaque)
		dp_eval_fail(m, DP_WHY_UNKNOWN);
	switch (atom) {
	case DW_OP_and:
		v = a.v & b.v;
		break;
	case DW_OP_or:
		v = a.v | b.v;
		break;
	case DW_OP_xor:
		v = a.v ^ b.v;
		break;
	case DW_OP_plus:
		v = a.v + b.v;
		break;
	case DW_OP_minus:
		v = a.v - b.v;
		break;
	case DW_OP_mul:
		v = a.v * b.v;
		break;
	case DW_OP_div:
	case DW_OP_mod:
		if (!divide(atom, a, b, &v))
			dp_eval_fail(m, DP_WHY_UNKNOWN);
		break;
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
		v = shift(atom, a, b.v);
		break;
	default:
		dp_eval_push(m, compare(atom, a, b));
		return;
	}
	dp_eval_push_typed(m, v, a.size, a.is_signed);
}

static void shuffle(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	const size_t need = op->atom == DW_OP_over || op->atom == DW_OP_swap ? 2 : op->atom == DW_OP_rot ? 3 : 1;
	const uint64_t index = op->atom == DW_OP_over ? 1 : op->atom == DW_OP_pick ? op->number : 0;
	if (m->n < need || m->n <= index) {
		dp_eval_fail(m, DP_WHY_UNKNOWN);
		return;
	}
	struct dp_eval_item *top = &m->stack[m->n - 1], e = *top;
	if (op->atom == DW_OP_drop) {
		m->n--;
	} else if (op->atom == DW_OP_swap) {
		*top = top[-1];
		top[-1] = e;
	} else if (op->atom == DW_OP_rot) {
		*top = top[-1];
		top[-1] = top[-2];
		top[-2] = e;
	} else {
		e = m->stack[m->n - 1 - index];
		dp_eval_push_typed(m, e.v, e.size, e.is_signed);
	}
}

bool dp_eval_operate(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	struct dp_eval_item a;
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
		a = dp_eval_pop(m);
		if (a.is_opaque)
			dp_eval_fail(m, DP_WHY_UNKNOWN);
		dp_eval_push_typed(m,
		                   op->atom == DW_OP_not                       ? ~a.v
		                   : op->atom == DW_OP_neg || (int64_t)a.v < 0 ? 0 - a.v
		                                                               : a.v,
		                   a.size, a.is_signed);
		return true;
	case DW_OP_plus_uconst:
		a = dp_eval_pop(m);
		if (a.is_opaque)
			dp_eval_fail(m, DP_WHY_UNKNOWN);
		dp_eval_push_typed(m, a.v + op->number, a.size, a.is_signed);
		return true;
	case DW_OP_deref:
		dp_eval_load(m, 8);
		return true;
	case DW_OP_deref_size:
		dp_eval_load(m, op->number);
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

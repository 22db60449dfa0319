/* SPDX-License-Identifier: MIT */
/* DWARF 5's typed values: integers of a size, floats and doubles. */
#include "probes/dwarf/dwarf_operation.h"
#include "probes/dwarf/type.h"

#include <string.h>

static const struct dp_dwarf_type wide = {.size = 8, .is_real = true};

static bool base_type(Dwarf_Die *die, struct dp_dwarf_type *ret)
{
	uint64_t encoding = 0, size = 0;
	if (dwarf_tag(die) != DW_TAG_base_type || !dp_die_unsigned(die, DW_AT_encoding, &encoding) ||
	    !dp_die_unsigned(die, DW_AT_byte_size, &size))
		return false;
	const bool is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	const bool is_integer = is_signed || encoding == DW_ATE_unsigned || encoding == DW_ATE_unsigned_char ||
	                        encoding == DW_ATE_boolean || encoding == DW_ATE_address || encoding == DW_ATE_UTF;
	*ret = (struct dp_dwarf_type){.size = (uint8_t)size, .is_signed = is_signed, .is_real = encoding == DW_ATE_float};
	return ((is_integer && (size == 1 || size == 2)) || ((is_integer || ret->is_real) && (size == 4 || size == 8)));
}

bool dp_dwarf_operand_type(Dwarf_Attribute *attr, const Dwarf_Op *op, struct dp_dwarf_type *ret)
{
	Dwarf_Die die;
	return attr && !dwarf_getlocation_die(attr, op, &die) && base_type(&die, ret);
}

static const char *apply(struct dp_dwarf_machine *m, enum dp_expr_op op, union dp_dwarf_value *v)
{
	return m->back->apply(m, op, (union dp_dwarf_value[2]){*v}, v);
}

static const char *from_real(struct dp_dwarf_machine *m, struct dp_dwarf_item *a, struct dp_dwarf_type to)
{
	const char *why = a->type.size == 4 ? apply(m, DP_OP_F2D, &a->value) : NULL;
	if (why || (to.is_real && to.size == 8))
		return why;
	if (to.is_real)
		return apply(m, DP_OP_D2F, &a->value);
	return apply(m, to.size == 8 && !to.is_signed ? DP_OP_D2U : DP_OP_D2I, &a->value);
}

static const char *to_real(struct dp_dwarf_machine *m, struct dp_dwarf_item *a, struct dp_dwarf_type to)
{
	const bool is_unsigned = a->type.size && !a->type.is_signed;
	if (to.size == 4)
		return apply(m, is_unsigned ? DP_OP_U2F : DP_OP_I2F, &a->value);
	return apply(m, is_unsigned ? DP_OP_U2D : DP_OP_I2D, &a->value);
}

static const char *as(struct dp_dwarf_machine *m, struct dp_dwarf_item *a, struct dp_dwarf_type to)
{
	const char *why = NULL;
	if (a->type.is_real)
		why = from_real(m, a, to);
	else if (to.is_real)
		why = to_real(m, a, to);
	a->type = to;
	return why;
}

void dp_dwarf_convert(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	struct dp_dwarf_item a = dp_dwarf_pop(m);
	struct dp_dwarf_type to = {0};
	const bool known = !op->number || dp_dwarf_operand_type(m->attr, op, &to);
	const char *why = known ? as(m, &a, to) : DP_ABSENT_UNKNOWN;
	dp_dwarf_push_typed(m, why, a);
}

void dp_dwarf_reinterpret(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	struct dp_dwarf_item a = dp_dwarf_pop(m);
	struct dp_dwarf_type to = {0};
	const bool known = !op->number || dp_dwarf_operand_type(m->attr, op, &to);
	const unsigned from = a.type.size ? a.type.size : DP_DWARF_WORD, size = to.size ? to.size : DP_DWARF_WORD;
	a.type = to;
	dp_dwarf_push_typed(m, known && from == size ? NULL : DP_ABSENT_UNKNOWN, a);
}

void dp_dwarf_typed_constant(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Block block;
	struct dp_dwarf_item item = {0};
	uint64_t v = 0;
	const char *why = DP_ABSENT_UNKNOWN;
	if (dp_dwarf_operand_type(m->attr, op, &item.type) && !dwarf_getlocation_attr(m->attr, op, &attr) &&
	    !dwarf_formblock(&attr, &block) && block.length == item.type.size) {
		memcpy(&v, block.data, block.length);
		why = m->back->constant(m, v, &item.value);
	}
	dp_dwarf_push_typed(m, why, item);
}

void dp_dwarf_typed_load(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	const struct dp_dwarf_item addr = dp_dwarf_pop(m);
	struct dp_dwarf_item item = {0};
	const char *why = DP_ABSENT_UNKNOWN;
	if (dp_dwarf_operand_type(m->attr, op, &item.type) && op->number == item.type.size && !addr.type.is_real)
		why = m->back->load(m, addr.value, item.type.size, &item.value);
	dp_dwarf_push_typed(m, why, item);
}

void dp_dwarf_typed_register(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	struct dp_dwarf_item item = {0};
	const char *why =
	        dp_dwarf_operand_type(m->attr, op, &item.type) ? m->back->reg(m, op->number, &item.value) : DP_ABSENT_UNKNOWN;
	dp_dwarf_push_typed(m, why, item);
}

/* For +, -, * and / of floats, computing in double and rounding afterwards gives the same result. */
void dp_dwarf_real_binary(struct dp_dwarf_machine *m, enum dp_expr_op op, struct dp_dwarf_item a, struct dp_dwarf_item b)
{
	const struct dp_dwarf_type type = a.type;
	const bool compares = op >= DP_OP_FEQ && op <= DP_OP_FGE;
	if (op == DP_OP_NOT || !a.type.is_real || !b.type.is_real || a.type.size != b.type.size) {
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	const char *why = as(m, &a, wide);
	why = why ? why : as(m, &b, wide);
	why = why ? why : m->back->apply(m, op, (union dp_dwarf_value[2]){a.value, b.value}, &a.value);
	if (compares)
		a.type = (struct dp_dwarf_type){0};
	else if (!why)
		why = as(m, &a, type);
	dp_dwarf_push_typed(m, why, a);
}

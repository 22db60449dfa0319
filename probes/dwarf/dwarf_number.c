/* SPDX-License-Identifier: MIT */
/* What all back ends of the machine do whose values are numbers. */
#include "probes/dwarf/dwarf_machine.h"
#include "probes/record/expr_internal.h"

const char *dp_dwarf_number(struct dp_dwarf_machine *m, uint64_t v, union dp_dwarf_value *ret)
{
	(void)m;
	ret->number = v;
	return NULL;
}

const char *dp_dwarf_number_apply(struct dp_dwarf_machine *m, enum dp_expr_op op, const union dp_dwarf_value operand[2],
                                  union dp_dwarf_value *ret)
{
	(void)m;
	ret->number = dp_expr_apply(op, operand[0].number, operand[1].number);
	return NULL;
}

const char *dp_dwarf_number_cast(struct dp_dwarf_machine *m, union dp_dwarf_value v, struct dp_dwarf_type type,
                                 union dp_dwarf_value *ret)
{
	(void)m;
	ret->number = dp_expr_extend(v.number, type.size, type.is_signed);
	return NULL;
}

bool dp_dwarf_number_get(struct dp_dwarf_machine *m, union dp_dwarf_value v, uint64_t *ret)
{
	(void)m;
	*ret = v.number;
	return true;
}

/* SPDX-License-Identifier: MIT */
/* Internals of the machine: the table of operations and their helpers. */
#ifndef DP_PROBES_DWARF_DWARF_OPERATION_H
#define DP_PROBES_DWARF_DWARF_OPERATION_H

#include "probes/dwarf/dwarf_machine.h"

struct dp_dwarf_operation {
	void (*step)(struct dp_dwarf_machine *m, const Dwarf_Op *op);
	uint8_t takes; /* minimum stack depth */
	/* Operators for signed, unsigned and floating-point operands; DP_OP_NOT: none. */
	uint8_t of_signed, of_unsigned, of_real;
};
extern const struct dp_dwarf_operation dp_dwarf_operations[256]; /* by opcode; step NULL: unknown */

void dp_dwarf_push_item(struct dp_dwarf_machine *m, const char *why, struct dp_dwarf_item item);

/* dwarf_operators.c */
void dp_dwarf_shuffle(struct dp_dwarf_machine *m, const Dwarf_Op *op);
void dp_dwarf_unary(struct dp_dwarf_machine *m, const Dwarf_Op *op);
void dp_dwarf_binary(struct dp_dwarf_machine *m, const Dwarf_Op *op);
void dp_dwarf_shift(struct dp_dwarf_machine *m, const Dwarf_Op *op);

/* dwarf_typed.c: values of base types. */
void dp_dwarf_convert(struct dp_dwarf_machine *m, const Dwarf_Op *op);
void dp_dwarf_reinterpret(struct dp_dwarf_machine *m, const Dwarf_Op *op);
void dp_dwarf_typed_constant(struct dp_dwarf_machine *m, const Dwarf_Op *op);
void dp_dwarf_typed_load(struct dp_dwarf_machine *m, const Dwarf_Op *op);
void dp_dwarf_typed_register(struct dp_dwarf_machine *m, const Dwarf_Op *op);
void dp_dwarf_push_typed(struct dp_dwarf_machine *m, const char *why, struct dp_dwarf_item item);
/* The base type that an operation refers to: an integer, a float or a double. False if it is another one. */
bool dp_dwarf_operand_type(Dwarf_Attribute *attr, const Dwarf_Op *op, struct dp_dwarf_type *ret);
void dp_dwarf_real_binary(struct dp_dwarf_machine *m, enum dp_expr_op op, struct dp_dwarf_item a, struct dp_dwarf_item b);

#endif

/* SPDX-License-Identifier: MIT */
/* The stack machine of DWARF's location expressions, over values that are not known yet. */
#ifndef DP_PROBES_LOCATION_MACHINE_H
#define DP_PROBES_LOCATION_MACHINE_H

#include "probes/scope_internal.h"

#define DP_MACHINE_STACK 64u
#define DP_MACHINE_WORD  8u

struct dp_machine_entry {
	struct dp_expr *expr;
	uint8_t size; /* of its base type; 0: the generic type */
	bool is_signed;
};

enum dp_machine_result { DP_MACHINE_ADDRESS, DP_MACHINE_VALUE, DP_MACHINE_REGISTER };

struct dp_machine {
	struct dp_scope *s;
	struct dp_arena *a;
	Dwarf_Attribute *attr;
	struct dp_machine_entry stack[DP_MACHINE_STACK];
	size_t n;
	enum dp_machine_result result;
	unsigned reg; /* DP_MACHINE_REGISTER: DWARF's number */
	const char *absent;
	struct dp_storage pieces;
	bool is_implicit; /* as in struct dp_piece, of the piece that is being found */
	Dwarf_Attribute target;
	int64_t inside;
	unsigned nesting;
};

/* location_ops.c: the first failure counts. */
void dp_machine_fail(struct dp_machine *m, const char *why);
void dp_machine_push(struct dp_machine *m, struct dp_expr *e);
void dp_machine_push_typed(struct dp_machine *m, struct dp_expr *e, uint8_t size, bool is_signed);
struct dp_machine_entry dp_machine_pop(struct dp_machine *m);
/* Does what `op` says if that concerns the stack alone. */
bool dp_machine_operator(struct dp_machine *m, Dwarf_Op *op);
void dp_machine_convert(struct dp_machine *m, Dwarf_Op *op);
void dp_machine_typed_register(struct dp_machine *m, Dwarf_Op *op);

#endif

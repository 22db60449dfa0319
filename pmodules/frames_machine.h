/* SPDX-License-Identifier: MIT */
/* The stack machine of DWARF's expressions. */
#ifndef DP_PMODULES_FRAMES_MACHINE_H
#define DP_PMODULES_FRAMES_MACHINE_H

#include "pmodules/frames.h"

#define DP_EVAL_STACK 64u

struct dp_eval_item {
	uint64_t v;
	uint8_t size; /* of a base type, or 0 */
	bool is_signed;
	bool is_opaque; /* the bits of a floating-point number: nothing is computed with it */
};
enum dp_eval_result { DP_EVAL_ADDRESS, DP_EVAL_VALUE, DP_EVAL_REGISTER, DP_EVAL_VECTOR, DP_EVAL_BLOCK };
struct dp_eval_machine {
	const struct dp_eval *e;
	struct dp_eval_item stack[DP_EVAL_STACK];
	size_t n;
	enum dp_eval_result result;
	unsigned reg;
	Dwarf_Block block;
	const char *why;
};

/* The first failure counts. */
void dp_eval_fail(struct dp_eval_machine *m, const char *why);
void dp_eval_push_typed(struct dp_eval_machine *m, uint64_t v, uint8_t size, bool is_signed);
void dp_eval_push(struct dp_eval_machine *m, uint64_t v);
struct dp_eval_item dp_eval_pop(struct dp_eval_machine *m);
bool dp_eval_reg(struct dp_eval_machine *m, uint64_t number, uint64_t *ret);
void dp_eval_load(struct dp_eval_machine *m, uint64_t size);
void dp_eval_convert(struct dp_eval_machine *m, const Dwarf_Op *op);
void dp_eval_typed_register(struct dp_eval_machine *m, const Dwarf_Op *op);
/* The bits of an object of another kind than integers. */
void dp_eval_push_opaque(struct dp_eval_machine *m, const void *bytes, size_t n);
/* Does what `op` says if that concerns the stack alone. */
bool dp_eval_operate(struct dp_eval_machine *m, const Dwarf_Op *op);

#endif

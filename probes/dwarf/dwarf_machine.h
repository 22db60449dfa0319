/* SPDX-License-Identifier: MIT */
/*
 * The stack machine of DWARF's expressions (DWARF 5, 2.5, 2.6, 7.7), the one place that knows their operations. What its values
 * are is a back end's affair: numbers, of a process that is held still (pmodules/frames/frames_eval.c), or computations that a
 * stub is to make in the program (location.c). What is not understood, or not certain, is a value that is not there: never a
 * wrong one.
 *
 * The expression may be damaged or malicious: stack, steps and jumps are bounded here, and where a back end runs one expression
 * for the sake of another (a frame base, a caller's register) both live from the same steps; how deep, it has to bound itself.
 */
#ifndef DP_PROBES_DWARF_MACHINE_H
#define DP_PROBES_DWARF_MACHINE_H

#include "probes/dwarf/storage.h"

#include <dwarf.h>

#define DP_DWARF_STACK  64u
#define DP_DWARF_STEPS  4096u
#define DP_DWARF_WORD   8u
#define DP_DWARF_VECTOR 17u /* the System V psABI's number of xmm0 */

union dp_dwarf_value {
	uint64_t number;
	struct dp_expr *expr;
};
struct dp_dwarf_type {
	uint8_t size; /* of a base type: 1, 2, 4, 8; 0: the generic type */
	bool is_signed;
	bool is_real; /* the value is the bits of a float or a double */
};
struct dp_dwarf_item {
	union dp_dwarf_value value; /* integers are extended to 64 bits as their type says */
	struct dp_dwarf_type type;
};

struct dp_dwarf_machine;
/* Each function gives NULL and *ret, or why there is no such value: a static text. */
struct dp_dwarf_back {
	const char *(*constant)(struct dp_dwarf_machine *m, uint64_t v, union dp_dwarf_value *ret);
	/* What a register holds; of a vector the low 64 bits. */
	const char *(*reg)(struct dp_dwarf_machine *m, uint64_t number, union dp_dwarf_value *ret);
	/* `size` bytes, 1 to 8, of the memory there, zero-extended. */
	const char *(*load)(struct dp_dwarf_machine *m, union dp_dwarf_value addr, unsigned size, union dp_dwarf_value *ret);
	/* Unary operators have `a` alone. */
	const char *(*apply)(struct dp_dwarf_machine *m, enum dp_expr_op op, const union dp_dwarf_value operand[2],
	                     union dp_dwarf_value *ret);
	/* The low `type.size` bytes of it, extended. */
	const char *(*cast)(struct dp_dwarf_machine *m, union dp_dwarf_value v, struct dp_dwarf_type type,
	                    union dp_dwarf_value *ret);
	/* Is it known which number it is? */
	bool (*is_number)(struct dp_dwarf_machine *m, union dp_dwarf_value v, uint64_t *ret);
	const char *(*cfa)(struct dp_dwarf_machine *m, union dp_dwarf_value *ret);
	const char *(*frame_base)(struct dp_dwarf_machine *m, union dp_dwarf_value *ret);
	/* What the register held when the function was called. */
	const char *(*entry)(struct dp_dwarf_machine *m, uint64_t number, union dp_dwarf_value *ret);
	/* The address of what is at `offset` in the module's thread-local storage. */
	const char *(*tls)(struct dp_dwarf_machine *m, union dp_dwarf_value offset, union dp_dwarf_value *ret);
	/* The next `size` bytes of the object are what the machine has come to; UINT64_MAX: all of the rest. */
	void (*piece)(struct dp_dwarf_machine *m, uint64_t size);
};

enum dp_dwarf_result { DP_DWARF_ADDRESS, DP_DWARF_VALUE, DP_DWARF_REGISTER, DP_DWARF_BLOCK };

struct dp_dwarf_machine {
	const struct dp_dwarf_back *back;
	void *data;             /* the back end's own */
	struct dp_debug *debug; /* or NULL: no addresses */
	Dwarf_Attribute *attr;  /* that the operations are of; or NULL: none that refer to others */
	unsigned *steps;        /* that are left */
	/* What it has come to: the top of the stack is an address or a value; or: */
	enum dp_dwarf_result result;
	uint64_t reg;           /* REGISTER */
	Dwarf_Block block;      /* BLOCK */
	const char *why;        /* there is nothing. The first failure counts */
	bool is_implicit;       /* a pointer that the compiler did without: to what is `inside` the object of this attribute */
	Dwarf_Attribute target; /* is_implicit */
	int64_t inside;
	size_t npieces;
	/* Its own. */
	const Dwarf_Op *ops;
	size_t nops, at;
	size_t n;
	struct dp_dwarf_item stack[DP_DWARF_STACK];
};

/* Makes it ready; `steps` may be those of another one. */
void dp_dwarf_start(struct dp_dwarf_machine *m, const struct dp_dwarf_back *back, void *data, unsigned *steps);
/* Runs all of it. Where there were pieces, the back end has them, and m->npieces is not 0. */
void dp_dwarf_run(struct dp_dwarf_machine *m, const Dwarf_Op *ops, size_t n);

void dp_dwarf_fail(struct dp_dwarf_machine *m, const char *why);
/* With `why`, which is NULL unless there is no such value. */
void dp_dwarf_push(struct dp_dwarf_machine *m, const char *why, union dp_dwarf_value v);
struct dp_dwarf_item dp_dwarf_pop(struct dp_dwarf_machine *m);

/* Does the operation name a register? */
static inline bool dp_dwarf_is_register(const Dwarf_Op *op, uint64_t *number)
{
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)
		*number = op->atom - (unsigned)DW_OP_reg0;
	else if (op->atom == DW_OP_regx)
		*number = op->number;
	else
		return false;
	return true;
}

/* Is it a register's value and an offset? */
static inline bool dp_dwarf_is_based(const Dwarf_Op *op, uint64_t *number, uint64_t *offset)
{
	*offset = op->atom == DW_OP_bregx ? op->number2 : op->number;
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		*number = op->atom - (unsigned)DW_OP_breg0;
	else if (op->atom == DW_OP_bregx)
		*number = op->number;
	else
		return false;
	return true;
}

/* Does the expression count from the frame, which the prologue has to make first? */
static inline bool dp_dwarf_is_in_frame(const Dwarf_Op *ops, size_t n)
{
	uint64_t number, offset;
	return n && (ops[0].atom == DW_OP_fbreg || dp_dwarf_is_based(ops, &number, &offset));
}

#endif

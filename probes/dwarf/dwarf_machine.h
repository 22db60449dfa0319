/* SPDX-License-Identifier: MIT */
/*
 * The stack machine for DWARF expressions (DWARF 5, 2.5, 2.6, 7.7), the only code that knows their operations. A back end defines
 * the values: numbers from a stopped process (pmodules/value/eval.c), or computations that a stub makes in the program
 * (location.c). What is not supported or not certain gives no value, never a wrong one.
 *
 * Expressions may be damaged or malicious: stack, steps and jumps are bounded here. If a back end runs a second expression for
 * the first (a frame base, a caller's register), both share the step count; the back end must bound the nesting.
 */
#ifndef DP_PROBES_DWARF_DWARF_MACHINE_H
#define DP_PROBES_DWARF_DWARF_MACHINE_H

#include "probes/dwarf/storage.h"

#include <dwarf.h>

#define DP_DWARF_STACK  64u
#define DP_DWARF_STEPS  4096u
#define DP_DWARF_WORD   8u
#define DP_DWARF_VECTOR 17u /* xmm0 in the System V psABI's numbering */

union dp_dwarf_value {
	uint64_t number;
	struct dp_expr *expr;
};
struct dp_dwarf_type {
	uint8_t size; /* of a base type: 1, 2, 4, 8; 0 for the generic type */
	bool is_signed;
	bool is_real; /* the value is the bits of a float or a double */
};
struct dp_dwarf_item {
	union dp_dwarf_value value; /* integers are extended to 64 bits per their type */
	struct dp_dwarf_type type;
};

struct dp_dwarf_machine;
/*
 * Each function returns NULL and sets *ret, or returns why there is no value (a static text). A back end may do without those
 * from frame_base on: operations that need them have no value.
 */
struct dp_dwarf_back {
	const char *(*constant)(struct dp_dwarf_machine *m, uint64_t v, union dp_dwarf_value *ret);
	/* The value of a register; of a vector register the low 64 bits. */
	const char *(*reg)(struct dp_dwarf_machine *m, uint64_t number, union dp_dwarf_value *ret);
	/* `size` bytes (1 to 8) at `addr`, zero-extended. */
	const char *(*load)(struct dp_dwarf_machine *m, union dp_dwarf_value addr, unsigned size, union dp_dwarf_value *ret);
	/* Unary operators use only operand[0]. */
	const char *(*apply)(struct dp_dwarf_machine *m, enum dp_expr_op op, const union dp_dwarf_value operand[2],
	                     union dp_dwarf_value *ret);
	/* The low `type.size` bytes of `v`, extended. */
	const char *(*cast)(struct dp_dwarf_machine *m, union dp_dwarf_value v, struct dp_dwarf_type type,
	                    union dp_dwarf_value *ret);
	/* True if the value is a known number. */
	bool (*is_number)(struct dp_dwarf_machine *m, union dp_dwarf_value v, uint64_t *ret);
	const char *(*cfa)(struct dp_dwarf_machine *m, union dp_dwarf_value *ret);
	const char *(*frame_base)(struct dp_dwarf_machine *m, union dp_dwarf_value *ret);
	/* The register's value at the function's entry. */
	const char *(*entry)(struct dp_dwarf_machine *m, uint64_t number, union dp_dwarf_value *ret);
	/* The address of `offset` in the module's thread-local storage. */
	const char *(*tls)(struct dp_dwarf_machine *m, union dp_dwarf_value offset, union dp_dwarf_value *ret);
	/* Takes the machine's result as the object's next `size` bytes; UINT64_MAX: all the rest. */
	void (*piece)(struct dp_dwarf_machine *m, uint64_t size);
};

enum dp_dwarf_result { DP_DWARF_ADDRESS, DP_DWARF_VALUE, DP_DWARF_REGISTER, DP_DWARF_BLOCK };

struct dp_dwarf_machine {
	const struct dp_dwarf_back *back;
	void *data;             /* for the back end */
	struct dp_debug *debug; /* NULL: expressions have no addresses */
	Dwarf_Attribute *attr;  /* attribute of the operations; NULL: operations that refer to others fail */
	unsigned *steps;        /* steps left */
	/* The kind of result: address and value are on top of the stack. */
	enum dp_dwarf_result result;
	uint64_t reg;           /* REGISTER */
	Dwarf_Block block;      /* BLOCK */
	const char *why;        /* there is no result; reason of the first failure */
	bool is_implicit;       /* an optimized-out pointer to offset `inside` of the object that `target` describes */
	Dwarf_Attribute target; /* valid if is_implicit */
	int64_t inside;
	size_t npieces;
	/* Private. */
	const Dwarf_Op *ops;
	size_t nops, at;
	size_t n;
	struct dp_dwarf_item stack[DP_DWARF_STACK];
};

/* Initialises the machine. `steps` may be shared with another machine. */
void dp_dwarf_start(struct dp_dwarf_machine *m, const struct dp_dwarf_back *back, void *data, unsigned *steps);
/* Runs the whole expression. If it has pieces, the back end received them and m->npieces is not 0. */
void dp_dwarf_run(struct dp_dwarf_machine *m, const Dwarf_Op *ops, size_t n);

void dp_dwarf_fail(struct dp_dwarf_machine *m, const char *why);
/* Pushes `v`, or fails if `why` is not NULL. */
void dp_dwarf_push(struct dp_dwarf_machine *m, const char *why, union dp_dwarf_value v);
struct dp_dwarf_item dp_dwarf_pop(struct dp_dwarf_machine *m);

/* dwarf_number.c: for back ends whose values are numbers. */
const char *dp_dwarf_number(struct dp_dwarf_machine *m, uint64_t v, union dp_dwarf_value *ret);
const char *dp_dwarf_number_apply(struct dp_dwarf_machine *m, enum dp_expr_op op, const union dp_dwarf_value operand[2],
                                  union dp_dwarf_value *ret);
const char *dp_dwarf_number_cast(struct dp_dwarf_machine *m, union dp_dwarf_value v, struct dp_dwarf_type type,
                                 union dp_dwarf_value *ret);
bool dp_dwarf_number_get(struct dp_dwarf_machine *m, union dp_dwarf_value v, uint64_t *ret);

/* True if the operation names a register. */
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

/* True if the operation is a register's value plus an offset. */
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

/* True if the expression is relative to the frame, which exists only after the prologue. */
static inline bool dp_dwarf_is_in_frame(const Dwarf_Op *ops, size_t n)
{
	uint64_t number, offset;
	return n && (ops[0].atom == DW_OP_fbreg || dp_dwarf_is_based(ops, &number, &offset));
}

#endif

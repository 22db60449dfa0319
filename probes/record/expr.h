/* SPDX-License-Identifier: MIT */
/* Expressions for the machine: conditions, and values of fields. */
#ifndef DP_PROBES_RECORD_EXPR_H
#define DP_PROBES_RECORD_EXPR_H

#include "base/addr.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An expression for the machine: a tree of 64-bit values. The user's expression has types (scope.h); here they have become casts,
 * loads of a width, and operators for signed, unsigned and floating values. It may *fail*: a load faults, or a divisor is 0. A
 * condition that fails is false and counted (`unreadable`). A field that fails has its bit set in the mask.
 */
enum dp_expr_kind {
	DP_EXPR_CONST,  /* value */
	DP_EXPR_REG,    /* reg, shift, size: zero-extended; rip is a constant, rflags as DP_EXPR_RFLAGS */
	DP_EXPR_RFLAGS,
	DP_EXPR_UNARY,  /* op: '!' '~' '-' */
	DP_EXPR_BINARY, /* op: see enum dp_expr_op; && and || short-circuit */
	DP_EXPR_LOAD,   /* `size` bytes (1, 2, 4, 8) at address a, extended per is_signed */
	DP_EXPR_CAST,   /* the low `size` bytes of a, extended per is_signed */
	DP_EXPR_COND,   /* c ? a : b; evaluates only the selected one */
	DP_EXPR_THREAD, /* base of the fs segment (the thread pointer: the word at %fs:0 by the ABI) */
	DP_EXPR_XMM,    /* low `size` (4, 8) bytes of vector register `reg` (0-15), zero-extended */
	DP_EXPR_FACT,   /* value: enum dp_fact */
	DP_EXPR_MATCH,  /* 1 if the string at address a matches `text` (see `match`), else 0. b: GLOB: its length (is_signed), or
	                   NULL */
};
enum dp_fact { /* properties of a hit */
	DP_FACT_PID,      /* in the target's pid namespace */
	DP_FACT_TID,
	DP_FACT_CPU,      /* processor at some moment of the hit */
	DP_FACT_TIME,     /* CLOCK_MONOTONIC in ns (the tool converts the time stamp); in a condition: time stamp counter ticks */
	DP_FACT_HITS,     /* hits of this probe so far, with this one; the condition does not matter */
	DP_FACT_DURATION, /* at a return: ns since the entry of the same call; if unknown, the hit is lost */
	DP_FACT_CALL, /* at an entry and at a return that are a pair: the call's number, of no other call */
	DP_FACT_CALLER,   /* at a function's first instruction, a ret or a tail jump: the return address */
	DP_FACT_COMM,     /* only below DP_EXPR_MATCH: the thread's name, as of its first hit */
};
enum dp_match {
	DP_MATCH_EQUAL,  /* the whole string, NUL included */
	DP_MATCH_PREFIX, /* its first characters */
	DP_MATCH_GLOB,   /* fnmatch's * and ?; compares at most DP_STRING_MAX characters */
};
enum dp_expr_op {
	DP_OP_NOT, DP_OP_COMPL, DP_OP_NEG,
	DP_OP_MUL, DP_OP_ADD, DP_OP_SUB, DP_OP_SHL, DP_OP_SHR, DP_OP_AND, DP_OP_XOR, DP_OP_OR,
	DP_OP_EQ, DP_OP_NE, DP_OP_LT, DP_OP_LE, DP_OP_GT, DP_OP_GE, DP_OP_ULT, DP_OP_ULE, DP_OP_UGT, DP_OP_UGE,
	DP_OP_LAND, DP_OP_LOR,
	/* Division truncates and fails for a divisor of 0; INT64_MIN / -1 is INT64_MIN, its remainder 0. SHR is arithmetic, LSHR
	 * logical. */
	DP_OP_DIV, DP_OP_MOD, DP_OP_UDIV, DP_OP_UMOD, DP_OP_LSHR,
	/* Operands and results are bits of doubles (comparisons give 0 or 1); IEEE 754, round to nearest. */
	DP_OP_FADD, DP_OP_FSUB, DP_OP_FMUL, DP_OP_FDIV,
	DP_OP_FEQ, DP_OP_FNE, DP_OP_FLT, DP_OP_FLE, DP_OP_FGT, DP_OP_FGE,
	/* Unary conversions between 64-bit integers, doubles, and floats (their bits in the low half). */
	DP_OP_FNEG, DP_OP_I2D, DP_OP_U2D, DP_OP_D2I, DP_OP_F2D, DP_OP_D2F,
	DP_OP_D2U, DP_OP_I2F, DP_OP_U2F,
};
struct dp_expr {
	enum dp_expr_kind kind;
	enum dp_expr_op op;
	uint64_t value;
	uint8_t reg, shift, size;
	bool is_signed;
	enum dp_match match;
	struct dp_expr *a, *b, *c;
	char *text; /* DP_EXPR_MATCH; owned */
};
/* A tree has at most so many nodes, which bounds recursion over it. */
#define DP_EXPR_MAX_NODES 256u
struct dp_expr *dp_expr_destroy(struct dp_expr *expr);
/* Sets the value of `rip`, which the parser cannot know (0 until then), to the site's address. Call it before compiling. */
void dp_expr_bind(struct dp_expr *expr, dp_addr site);
/* True if evaluating the expression may fail. */
bool dp_expr_may_fail(const struct dp_expr *expr);
/* True if it reads memory or the thread's name. Where loads must not fault, that costs system calls in the program. False for
 * NULL. */
bool dp_expr_reads(const struct dp_expr *expr);
/* The reference interpreter, against which the compiler is tested. dp_expr_eval() is for expressions without loads and facts. */
struct dp_regs;
struct dp_expr_env {
	const struct dp_regs *regs;
	const uint64_t (*xmm)[2]; /* 16 registers, or NULL */
	uint64_t thread;
	uint64_t (*fact)(enum dp_fact fact, void *data);
	bool (*read)(uint64_t addr, void *buf, size_t n, void *data); /* false: unreadable */
	void *data;
};
uint64_t dp_expr_eval(const struct dp_expr *expr, const struct dp_regs *regs);
bool dp_expr_eval_in(const struct dp_expr *expr, const struct dp_expr_env *world, uint64_t *ret) DP_MUST_CHECK; /* false: it
                                                                                                                   * failed */

#endif

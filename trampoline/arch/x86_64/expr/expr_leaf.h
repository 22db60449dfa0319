/* SPDX-License-Identifier: MIT */
/* Conditions that are one instruction, and the tables of operators. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EXPR_EXPR_LEAF_H
#define DP_TRAMPOLINE_ARCH_X86_64_EXPR_EXPR_LEAF_H

#include "probes/probes.h"
#include "trampoline/arch/x86_64/expr/stub_view.h"

/* Whether the value is a constant. */
bool dp_expr_constant(const struct dp_expr *e, uint64_t *ret);

bool dp_expr_is_compare(enum dp_expr_op op); /* of integers */
bool dp_expr_is_logic(enum dp_expr_op op);   /* ! && || */
bool dp_expr_is_shift(enum dp_expr_op op);
bool dp_expr_is_divide(enum dp_expr_op op);
bool dp_expr_is_alu(enum dp_expr_op op); /* + - & ^ | */
bool dp_expr_commutes(enum dp_expr_op op);
enum dp_cc dp_expr_cc(enum dp_expr_op op); /* of a comparison, after `cmp b, a` */
enum dp_alu dp_expr_alu(enum dp_expr_op op);
enum dp_expr_op dp_expr_mirrored(enum dp_expr_op op); /* a comparison with its sides exchanged */

/* A part of a general register, extended to 64 bits. */
struct dp_part {
	uint8_t reg, shift, size;
	bool is_signed;
};
bool dp_expr_part(const struct dp_expr *e, struct dp_part *ret);

/* A comparison by the flags of one instruction on registers as in the view. */
struct dp_leaf {
	enum { DP_LEAF_CMP_IMM, DP_LEAF_TEST_IMM, DP_LEAF_CMP_REG } kind;
	struct dp_part part, other;
	int32_t imm;
	enum dp_cc cc;
};
bool dp_expr_leaf(const struct dp_expr *e, struct dp_leaf *ret);
/* Returns the condition code of "true". Changes the flags, and rax if both registers of a comparison are in memory. */
enum dp_cc dp_leaf_emit(struct dp_asm *a, const struct dp_view *view, const struct dp_leaf *leaf);

#endif

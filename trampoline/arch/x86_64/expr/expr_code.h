/* SPDX-License-Identifier: MIT */
/* Shared by the files of the expression compiler. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EXPR_EXPR_CODE_H
#define DP_TRAMPOLINE_ARCH_X86_64_EXPR_EXPR_CODE_H

#include "trampoline/arch/x86_64/expr/expr.h"
#include "trampoline/arch/x86_64/expr/expr_leaf.h"

/* ---- expr_value.c ---- */

/* Marks the register as changed. */
void dp_code_claim(struct dp_expr_code *c, unsigned reg);
struct dp_label dp_code_failure(struct dp_expr_code *c);
/* Extends the low `size` bytes of rax. */
void dp_code_extend(struct dp_expr_code *c, unsigned size, bool is_signed);
/* The maximum of words on the stack while the value is computed. */
unsigned dp_code_pushes(const struct dp_expr *e);
/* Pushes the value; it counts as one word. Drops words without reading them. */
void dp_code_push(struct dp_expr_code *c, const struct dp_expr *e);
void dp_code_drop(struct dp_expr_code *c, unsigned words);
/* cmp or test; returns the condition code of "true". */
enum dp_cc dp_code_compare(struct dp_expr_code *c, const struct dp_expr *e);

/* ---- expr_load.c ---- */

void dp_code_load(struct dp_expr_code *c, const struct dp_expr *e);
void dp_code_fact(struct dp_expr_code *c, enum dp_fact fact);
void dp_code_thread(struct dp_expr_code *c);
/* Whether n more instructions can be guarded. */
bool dp_code_guards(const struct dp_expr_code *c, unsigned n);
/* Queries the agent about the operand in rax; the result is in rax. With `may_fail`, a failure goes to the expression's exits. */
void dp_code_ask(struct dp_expr_code *c, const struct dp_ask *ask, const char *text, bool may_fail);

/* ---- expr_match.c ---- */

void dp_code_match(struct dp_expr_code *c, const struct dp_expr *e, bool sense, struct dp_label to);
bool dp_code_is_comm(const struct dp_expr *e);
unsigned dp_code_match_guards(const struct dp_expr *e);

/* ---- expr_float.c ---- */

bool dp_code_is_float(enum dp_expr_op op); /* binary */
/* Operands in rax and rcx, result in rax. */
void dp_code_float(struct dp_expr_code *c, enum dp_expr_op op);
/* The operand and the result are in rax. */
void dp_code_convert(struct dp_expr_code *c, enum dp_expr_op op);

#endif

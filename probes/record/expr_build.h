/* SPDX-License-Identifier: MIT */
/*
 * Builds struct dp_expr in an arena: parts may be shared, constants are folded, and NULL (out of memory) propagates.
 * dp_build_finish() copies the result out of the arena as a tree.
 */
#ifndef DP_PROBES_RECORD_EXPR_BUILD_H
#define DP_PROBES_RECORD_EXPR_BUILD_H

#include "base/arena.h"
#include "probes/record/expr.h"

struct dp_expr *dp_build(struct dp_arena *a, struct dp_expr node);
struct dp_expr *dp_build_const(struct dp_arena *a, uint64_t value);
struct dp_expr *dp_build_reg(struct dp_arena *a, uint8_t reg);
struct dp_expr *dp_build_unary(struct dp_arena *a, enum dp_expr_op op, struct dp_expr *x);
struct dp_expr *dp_build_binary(struct dp_arena *a, enum dp_expr_op op, struct dp_expr *x, struct dp_expr *y);
struct dp_expr *dp_build_add(struct dp_arena *a, struct dp_expr *x, uint64_t n);
struct dp_expr *dp_build_load(struct dp_arena *a, struct dp_expr *addr, uint8_t size, bool is_signed);
struct dp_expr *dp_build_cast(struct dp_arena *a, struct dp_expr *x, uint8_t size, bool is_signed);
bool dp_build_is_const(const struct dp_expr *x, uint64_t *ret);
/* Copies the expression as a tree. DP_TAG_SYNTAX if it is too large. A NULL `x` means out of memory. */
struct dp_error *dp_build_finish(const struct dp_expr *x, struct dp_expr **ret) DP_MUST_CHECK;

#endif

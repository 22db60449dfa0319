/* SPDX-License-Identifier: MIT */
#ifndef DP_PROBES_RECORD_EXPR_INTERNAL_H
#define DP_PROBES_RECORD_EXPR_INTERNAL_H

#include "probes/record/expr.h"

/* The origin of a DP_EXPR_CONST, stored in its `reg`. */
enum dp_const_origin {
	DP_CONST_FOLDED = 1,
	DP_CONST_RIP = 2, /* the site's address, set by dp_expr_bind() */
};

/* Applies `op` to `a` (and `b`). Logical operators expect truth values. A division by 0 fails, so do not call it for one. */
uint64_t dp_expr_apply(enum dp_expr_op op, uint64_t a, uint64_t b);
static inline bool dp_expr_is_unary(enum dp_expr_op op)
{
	return op <= DP_OP_NEG || op >= DP_OP_FNEG;
}
/* The low `size` bytes of v, extended to 64 bits. */
static inline uint64_t dp_expr_extend(uint64_t v, unsigned size, bool is_signed)
{
	const unsigned unused = size >= 8 ? 0 : 64 - 8 * size;
	return is_signed ? (uint64_t)((int64_t)(v << unused) >> unused) : v << unused >> unused;
}
/* True for / and % of every kind. */
bool dp_expr_divides(enum dp_expr_op op);

#endif

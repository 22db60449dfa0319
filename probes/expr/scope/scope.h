/* SPDX-License-Identifier: MIT */
/*
 * scope.h: the language of -t, --when and of what is counted, in the terms of the program at one place. Text is checked for its
 * grammar when it is typed, and given a meaning for each site: names are looked up where the site is (blocks, inlined functions),
 * values are found by the location lists at its address. The result is the machine's terms: struct dp_expr, struct dp_field.
 */
#ifndef DP_PROBES_SCOPE_H
#define DP_PROBES_SCOPE_H

#include "probes/probes.h"
#include "probes/point/syscalls.h"
#include "probes/point/usdt/usdt_args.h"

/* The program as seen from one site. Borrows the image, which must outlive everything that was made in it. */
struct dp_scope;
struct dp_scope_at {
	struct dp_site site;
	/*
	 * What arg0.. and retval mean here: at a function's entry arguments are where the ABI passes them; at a return (before
	 * the ret, or at the tail jump) `retval` is known by the ABI and the debug information's type.
	 */
	enum dp_point point;
	const struct dp_usdt_arg *usdt; /* of a USDT marker: arg0.. are these; or NULL */
	size_t nusdt;
	/* Of a system call: its arguments have names, arg0.. are these, retval is its result; or NULL. */
	const struct dp_call_at *call;
	/* The site is where a copy of this function (its linkage name, if it has one) was inlined; or NULL. */
	const char *inlined;
};
struct dp_error *dp_scope_create(struct dp_image *image, const struct dp_scope_at *at, struct dp_scope **ret) DP_MUST_CHECK;
struct dp_scope *dp_scope_destroy(struct dp_scope *scope);

/* Is the text an expression by its grammar? Needs no program; errors carry a caret. */
struct dp_error *dp_scope_check(const char *text) DP_MUST_CHECK;
/* The same for a -t argument. */
struct dp_error *dp_context_check(const char *context) DP_MUST_CHECK;
/*
 * The expression's value as an integer (arithmetic types, enums, pointers), for counts and histograms. A NULL scope knows
 * registers and numbers only. DP_TAG_NO_VARIABLE, NO_VALUE (optimized out), NO_DEBUG_INFO, SYNTAX.
 */
struct dp_error *dp_scope_expr(struct dp_scope *scope, const char *text, struct dp_expr **ret) DP_MUST_CHECK;
/* The same for a condition: a floating-point number is true unless it is 0. */
struct dp_error *dp_scope_condition(struct dp_scope *scope, const char *text, struct dp_expr **ret) DP_MUST_CHECK;
/*
 * The fields that one -t argument makes: those of dp_fields_add(), `args`, `locals`, `retval`, `duration`, EXPR, NAME=EXPR,
 * `str(p,64)`, `*req`. A value that is not there at this site is a field without one (DP_SRC_NONE), unless it was named alone.
 */
struct dp_error *dp_scope_fields(struct dp_scope *scope, const char *context, struct dp_fields *fields) DP_MUST_CHECK;
/* Does a condition hold a name that a variable may have, a register's without a $ included, or what else depends on the place ($retval)? */
bool dp_scope_has_names(const char *text);
/* Does a -t argument, or an expression, ask for the processor's flags by any of their names? A variable of such a name counts as well. */
bool dp_context_shows_flags(const char *text);
/* May `context` be taken by dp_fields_add() already, without a program? */
bool dp_scope_is_fixed(const char *context);

#endif

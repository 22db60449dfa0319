/* SPDX-License-Identifier: MIT */
/*
 * The expression language of -t, --when and aggregations, at one place of the program. The text's syntax is checked when it is
 * typed. It is compiled for each site: names are looked up in the blocks and inlined functions around it, values are located by
 * the location lists at its address. The result is struct dp_expr or struct dp_field.
 */
#ifndef DP_PROBES_EXPR_SCOPE_SCOPE_H
#define DP_PROBES_EXPR_SCOPE_SCOPE_H

#include "probes/expr/syntax/check.h"
#include "probes/point/resolve.h"
#include "probes/point/syscalls.h"
#include "probes/point/usdt/usdt_args.h"
#include "probes/record/expr.h"
#include "probes/record/fields.h"

/* The program as seen from one site. Borrows the image, which must outlive all results. */
struct dp_scope;
struct dp_scope_at {
	struct dp_site site;
	/*
	 * Defines arg0.. and retval. At a function's entry, arguments are where the ABI passes them. At a return (before the ret,
	 * or at the tail jump) the ABI and the result's type locate `retval`.
	 */
	enum dp_point point;
	const struct dp_usdt_arg *usdt; /* arguments of a USDT marker, for arg0..; or NULL */
	size_t nusdt;
	/* The system call at the site, or NULL: its arguments have names and are arg0.., retval is its result. */
	const struct dp_call_at *call;
	bool no_memory; /* what the call's arguments point to must not be read there */
	/* The site is the start of an inlined copy of this function (linkage name if it has one); or NULL. */
	const char *inlined;
};
struct dp_error *dp_scope_create(struct dp_image *image, const struct dp_scope_at *at, struct dp_scope **ret) DP_MUST_CHECK;
/*
 * The fields of a recorded event in place of a program. Expressions read field i at address DP_RECORDED_FIELD(i): numbers and
 * bytes as in the payload, strings with their NUL; field n is the name of the event's probe. Borrows the fields.
 */
struct dp_error *dp_scope_recorded(const struct dp_fields *fields, struct dp_scope **ret) DP_MUST_CHECK;
#define DP_RECORDED_FIELD(i) (((uint64_t)(i) + 1) << 32)
struct dp_scope *dp_scope_destroy(struct dp_scope *scope);

/*
 * Compiles an expression to an integer (arithmetic types, enums, pointers), for counts and histograms. A NULL scope knows only
 * registers and numbers. DP_TAG_NO_VARIABLE, NO_VALUE (optimized out), NO_DEBUG_INFO, SYNTAX.
 */
struct dp_error *dp_scope_expr(struct dp_scope *scope, const char *text, struct dp_expr **ret) DP_MUST_CHECK;
/* The same for a key of recorded events, which may be a string: then it is the string's address, DP_RECORDED_FIELD(i). */
struct dp_error *dp_scope_key(struct dp_scope *scope, const char *text, struct dp_expr **ret, bool *is_string) DP_MUST_CHECK;
/* The same for a condition: a floating-point number is true unless it is 0. */
struct dp_error *dp_scope_condition(struct dp_scope *scope, const char *text, struct dp_expr **ret) DP_MUST_CHECK;
/*
 * Parses the language without a program: registers (`$rdi`, `rdi`, `edi`, `dil`), arg0..arg5 for rdi rsi rdx rcx r8 r9,
 * and facts. A general register is a signed 64-bit value; its narrower parts are zero-extended. <,<=,>,>= compare signed unless a
 * side is a constant above INT64_MAX. Shift counts are taken mod 64; >> is arithmetic. Syntax errors have a caret line. Constant
 * parts are folded.
 */
struct dp_error *dp_expr_parse(const char *text, struct dp_expr **ret) DP_MUST_CHECK;
/*
 * Adds the fields of one -t argument: those of dp_fields_add(), `args`, `locals`, `retval`, `duration`, EXPR, NAME=EXPR,
 * `str(p,64)`, `*req`. A value that is not available at this site becomes a field without a value (DP_SRC_NONE).
 */
struct dp_error *dp_scope_fields(struct dp_scope *scope, const char *context, struct dp_fields *fields) DP_MUST_CHECK;
/* Is this why a field has no value: only returns have a result and a duration? */
bool dp_absent_before_return(const char *absent);

#endif

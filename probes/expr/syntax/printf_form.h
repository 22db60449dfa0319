/* SPDX-License-Identifier: MIT */
/* The printf form of a probe, 'foo "a=%d s=%s", a, str(s)': its fields are the arguments, displayed by the format. */
#ifndef DP_PROBES_EXPR_SYNTAX_PRINTF_FORM_H
#define DP_PROBES_EXPR_SYNTAX_PRINTF_FORM_H

#include "probes/record/fields.h"

#define DP_PRINTF_ARGS 32u

struct dp_printf_form {
	char *text;                     /* as typed, from the quote on */
	char *format;                   /* without quotes and escapes */
	char *arg[DP_PRINTF_ARGS];      /* as for -t */
	unsigned field[DP_PRINTF_ARGS]; /* field of each argument, set once the fields are known */
	size_t n;
};

struct dp_conversion {
	char flags[8];
	int width, precision; /* -1: none */
	char letter;          /* d u x X c s p f; % for %% */
};

/* Offset of the format in what was typed for a probe; 0 if there is none. */
size_t dp_printf_begins(const char *text);
/* Parses from the quote on. Checks conversions and the number of arguments. DP_TAG_SYNTAX with a caret. */
struct dp_error *dp_printf_parse(const char *text, struct dp_printf_form **ret) DP_MUST_CHECK;
struct dp_printf_form *dp_printf_destroy(struct dp_printf_form *form);
/* Parses the conversion at a % and returns its length; 0 if invalid. Skips length modifiers (l, ll, h, z): values have their own
 * width. */
size_t dp_printf_conversion(const char *at, struct dp_conversion *ret);
/* Checks that the conversion of argument `i` can display this field. */
struct dp_error *dp_printf_check(const struct dp_printf_form *form, size_t i, const struct dp_field *field) DP_MUST_CHECK;

#endif

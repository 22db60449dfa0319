/* SPDX-License-Identifier: MIT */
/* What contexts and conditions share: numbers, names, and errors that point at the place with a caret. */
#ifndef DP_PROBES_LEX_H
#define DP_PROBES_LEX_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* A whole number of `len` characters: octal (0...), decimal or hexadecimal (0x...), no sign, below 2^64. */
bool dp_lex_number(const char *text, size_t len, uint64_t *ret);
/* [A-Za-z_][A-Za-z0-9_]* over all of `len` characters. */
bool dp_lex_identifier(const char *text, size_t len);
/* DP_TAG_SYNTAX: the message, then `text` and a caret below its byte `at` (control characters shown as '?'). */
struct dp_error *dp_lex_error(const char *text, size_t at, const char *fmt, ...)
        __attribute__((format(printf, 3, 4))) DP_MUST_CHECK;
/* The same for what is no matter of grammar, with the message as it is. */
struct dp_error *dp_lex_point(enum dp_tag tag, const char *text, size_t at, const char *message) DP_MUST_CHECK;

#endif

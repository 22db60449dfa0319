/* SPDX-License-Identifier: MIT */
/* Lexing that contexts and conditions share: numbers, names, and errors with a caret. */
#ifndef DP_PROBES_RECORD_LEX_H
#define DP_PROBES_RECORD_LEX_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Parses an unsigned number of `len` characters below 2^64: octal (0...), decimal or hexadecimal (0x...). */
bool dp_lex_number(const char *text, size_t len, uint64_t *ret);
/* True if all `len` characters form [A-Za-z_][A-Za-z0-9_]*. */
bool dp_lex_identifier(const char *text, size_t len);
/* DP_TAG_SYNTAX: the message, `text`, and a caret below its byte `at` (control characters shown as '?'). */
struct dp_error *dp_lex_error(const char *text, size_t at, const char *fmt, ...)
        __attribute__((format(printf, 3, 4))) DP_MUST_CHECK;
/* The same with another tag, for errors that are not syntax errors, and with a finished message. */
struct dp_error *dp_lex_point(enum dp_tag tag, const char *text, size_t at, const char *message) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/* What the text of an expression or of a -t argument says, without a program. */
#ifndef DP_PROBES_EXPR_SYNTAX_CHECK_H
#define DP_PROBES_EXPR_SYNTAX_CHECK_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checks an expression's syntax. Errors have a caret. */
struct dp_error *dp_scope_check(const char *text) DP_MUST_CHECK;
/* The same for a -t argument. */
struct dp_error *dp_context_check(const char *context) DP_MUST_CHECK;
/* The offset of EXPR in NAME=EXPR; 0 if there is no name. The name has *n characters. */
size_t dp_context_given_name(const char *text, size_t *n);
/* True if a condition has a name that may be a variable's (a register's without $, too), or depends on the place ($retval). */
bool dp_scope_has_names(const char *text);
/*
 * Splits a condition on a call: parts between && that name retval, duration or a register are tested at the return, the others at
 * the entry. A condition without && outside of parentheses, or with || beside it, is one part. NULL: no part; the caller frees
 * both, also after an error.
 */
struct dp_error *dp_scope_split(const char *text, char **entry, char **at_return) DP_MUST_CHECK;
/* True if a -t argument or an expression uses the processor's flags by any of their names. A variable with such a name counts,
 * too. */
bool dp_context_shows_flags(const char *text);
/* True if the expression is str(...). *most: how many characters of the string it means. */
#define DP_TEXT_DEFAULT 64u
bool dp_scope_is_text(const char *text, uint64_t *most);
/* True if dp_fields_add() can handle `context`, without a program. */
bool dp_scope_is_fixed(const char *context);

#endif

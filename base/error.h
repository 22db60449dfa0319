/* SPDX-License-Identifier: MIT */
/*
 * Errors are values with a chain of causes (models: drgn, babeltrace2).
 *
 * A fallible function returns `struct dp_error *`. NULL means success. The caller owns any other value and prints, wraps or
 * destroys it. Results come back through last parameters named `ret`, which do not change on failure. Only cli/ prints or exits.
 */
#ifndef DP_BASE_ERROR_H
#define DP_BASE_ERROR_H

#include <stdbool.h>
#include <stdio.h>

/* Every error has a tag. tags.def has the name, meaning and remedy of each tag; `dynprobe explain` prints them. */
enum dp_tag {
#define DP_TAG(id, text, meaning, remedy) DP_TAG_##id,
#include "base/tags.def"
#undef DP_TAG
	DP_TAG_COUNT
};

struct dp_error {
	enum dp_tag tag;
	int sys; /* errno of a failed system call, or 0 */
	char *message;
	const char *remedy; /* what helps in this case, if the tag has several: a static text; or NULL: the tag's */
	struct dp_error *cause;
};

#define DP_MUST_CHECK __attribute__((warn_unused_result))
/* An error is never NULL. Without this gcc -O3 thinks DP_TRY() may go on after a failure and warns of unset results. */
#define DP_IS_ERROR __attribute__((returns_nonnull)) DP_MUST_CHECK

/* Creates an error. The message says what was asked, what was found, and what to do. Never NULL, even when out of memory. */
struct dp_error *dp_error(enum dp_tag tag, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_IS_ERROR;
/* "out of memory": what was to be made does not help who reads it, and a longer text would need memory. */
struct dp_error *dp_error_nomem(void) DP_IS_ERROR;
/* The same as dp_error() for a failed system call: appends ": " and strerror(errno), and stores errno. */
struct dp_error *dp_error_sys(enum dp_tag tag, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_IS_ERROR;
/* Adds a message on top of `cause`, keeps its tag, and takes ownership of it. */
struct dp_error *dp_error_wrap(struct dp_error *cause, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_IS_ERROR;
/* Sets the error's own remedy, and returns the error. "": none is printed. */
struct dp_error *dp_error_advise(struct dp_error *err, const char *remedy) DP_IS_ERROR;
/* Its own, or that of its causes; else its tag's. */
const char *dp_error_remedy(const struct dp_error *err);
/* Accepts NULL. Returns NULL, for `err = dp_error_destroy(err)`. */
struct dp_error *dp_error_destroy(struct dp_error *err);
/* The message and its causes on one line, or NULL if out of memory. The caller frees it. */
char *dp_error_text(const struct dp_error *err);
/* Prints "dynprobe: error: MESSAGE [DP-TAG]", a "caused by" line for each cause, and the remedy. */
void dp_error_print(const struct dp_error *err, FILE *to);

/* The name is "DP-FOREIGN" and so on. dp_tag_find() ignores case and a missing "DP-". */
const char *dp_tag_name(enum dp_tag tag);
const char *dp_tag_meaning(enum dp_tag tag);
const char *dp_tag_remedy(enum dp_tag tag);
const char *dp_tag_theme(enum dp_tag tag); /* the part of dynprobe it comes from */
bool dp_tag_find(const char *text, enum dp_tag *ret);

#define DP_TRY(expr)                                                                                                             \
	do {                                                                                                                     \
		struct dp_error *dp_try_ = (expr);                                                                               \
		if (dp_try_)                                                                                                     \
			return dp_try_;                                                                                          \
	} while (0)

#endif

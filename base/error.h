/* SPDX-License-Identifier: MIT */
/*
 * Errors are values with a cause chain (drgn and babeltrace2 are the models).
 *
 * A fallible function returns `struct dp_error *`: NULL is success, anything else is owned by the caller, who prints it,
 * wraps it or destroys it. Results come back through last parameters named `ret`, which are left alone on failure.
 * Only cli/ prints, and nobody below cli/ exits.
 */
#ifndef DP_BASE_ERROR_H
#define DP_BASE_ERROR_H

#include <stdbool.h>
#include <stdio.h>

/* Every refusal has a tag; tags.def holds name, one-line meaning and remedy, and feeds `dynprobe explain`. */
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
	struct dp_error *cause;
};

#define DP_MUST_CHECK __attribute__((warn_unused_result))
/* An error is never NULL: without this gcc -O3 follows DP_TRY() past a failure and warns of results that were not set. */
#define DP_IS_ERROR __attribute__((returns_nonnull)) DP_MUST_CHECK

/* A new error. The message names what was asked, what was found, and what to do next. Never NULL, even out of memory. */
struct dp_error *dp_error(enum dp_tag tag, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_IS_ERROR;
/* The same for a failed system call: appends ": " and strerror(errno), and keeps errno. */
struct dp_error *dp_error_sys(enum dp_tag tag, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_IS_ERROR;
/* A layer's own words on top of `cause` (which it takes over); the tag stays that of the cause. */
struct dp_error *dp_error_wrap(struct dp_error *cause, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_IS_ERROR;
/* Accepts NULL. Returns NULL, so that `err = dp_error_destroy(err)` reads well. */
struct dp_error *dp_error_destroy(struct dp_error *err);
/* "dynprobe: error: MESSAGE [DP-TAG]", a "caused by" line per cause, and what to do. */
void dp_error_print(const struct dp_error *err, FILE *to);

/* "DP-FOREIGN" and so on; the text of dp_tag_find() is matched without regard to case, with or without "DP-". */
const char *dp_tag_name(enum dp_tag tag);
const char *dp_tag_meaning(enum dp_tag tag);
const char *dp_tag_remedy(enum dp_tag tag);
const char *dp_tag_theme(enum dp_tag tag); /* where it comes from */
bool dp_tag_find(const char *text, enum dp_tag *ret);

#define DP_TRY(expr)                                                                                                             \
	do {                                                                                                                     \
		struct dp_error *dp_try_ = (expr);                                                                               \
		if (dp_try_)                                                                                                     \
			return dp_try_;                                                                                          \
	} while (0)

#endif

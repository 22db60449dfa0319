/* SPDX-License-Identifier: MIT */
/* The makings of an expansion: what has been made so far, and how one more probe is made. */
#ifndef DP_SESSION_EXPAND_INTERNAL_H
#define DP_SESSION_EXPAND_INTERNAL_H

#include "session/names.h"
#include "session/expand/expand.h"
#include "session/code/code_view.h"

struct dp_expander {
	const struct dp_trace_spec *from;
	struct dp_image *image;
	struct dp_code_view *view;
	struct dp_names names;
	struct dp_expansion out;
	size_t capacity, notes;
	bool pattern; /* what is being expanded names what it finds */
};

struct dp_expand_place {                 /* one of the probes that a pattern stands for */
	const struct dp_function *f;     /* which it is spelled by */
	const struct dp_function *named; /* which the event is called after; NULL: the same */
	uint64_t offset;
	enum dp_point point; /* PLACE: an instruction */
	bool plain;          /* the name is the function's alone */
	bool bound;          /* only in this build of the module */
	const char *when;    /* a further condition, or NULL */
	const char *called;  /* what the event is called after instead of a function; NULL: none */
};

struct dp_error *dp_expand_no_memory(void) DP_MUST_CHECK;
/* A copy of probe `from`, which is no pattern. */
struct dp_error *dp_expand_copy(struct dp_expander *x, size_t from) DP_MUST_CHECK;
/* One of the probes that `from` stands for. Its name is not unique yet. */
struct dp_error *dp_expand_add(struct dp_expander *x, size_t from, const struct dp_expand_place *at,
                               struct dp_probe **ret) DP_MUST_CHECK;
/* One that no target will have, so that it is counted and the reason is said where others are. Takes `why` over. */
struct dp_error *dp_expand_add_refused(struct dp_expander *x, size_t from, const struct dp_expand_place *at,
                                       struct dp_error *why) DP_MUST_CHECK;
/* expand_syscalls.c: the places of a system call. */
struct dp_error *dp_expand_calls(struct dp_expander *x, size_t from) DP_MUST_CHECK;
/* expand_inside.c: a place inside of a function. */
struct dp_error *dp_expand_inside(struct dp_expander *x, size_t from, const struct dp_selected *s) DP_MUST_CHECK;
/* "foo (inlined in bar)" -> "foo_inlined_in_bar", "ns::foo<int>" -> "ns_foo_int"; malloc'ed. */
char *dp_expand_called(const char *label);
/* A name without pattern and offset, which may stand for more than its symbol; what else there is goes to `add`. */
typedef struct dp_error *dp_expand_one_function(struct dp_expander *x, size_t from, const struct dp_selected *s);
bool dp_expand_is_plain(const struct dp_probe *p);
struct dp_error *dp_expand_plain(struct dp_expander *x, size_t from, dp_expand_one_function *add) DP_MUST_CHECK;

#endif

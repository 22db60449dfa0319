/* SPDX-License-Identifier: MIT */
/* The state of an expansion, and how it adds probes. */
#ifndef DP_SESSION_EXPAND_EXPAND_INTERNAL_H
#define DP_SESSION_EXPAND_EXPAND_INTERNAL_H

#include "session/code/code_view.h"
#include "session/code/function_points.h"
#include "session/expand/expand.h"
#include "session/names.h"

struct dp_expander {
	const struct dp_trace_spec *from;
	struct dp_image *image;
	struct dp_code_view *view;
	struct dp_names names;
	struct dp_expansion out;
	size_t capacity, notes;
	size_t functions;              /* of a tree of calls, so far */
	struct dp_tree_placed *placed; /* these functions (expand_tree.c) */
	size_t entry;                  /* of the function whose returns are added: as in struct dp_typed */
	uint64_t early;                /* of the same function: dp_expand_early() */
	bool pattern;                  /* the current spec is a pattern: its probes are named after what it finds */
};

struct dp_expand_place {                 /* the site of one new probe */
	const struct dp_function *f;     /* the function in its spec */
	const struct dp_function *named; /* the function in the event's name; NULL: the same */
	uint64_t offset;
	enum dp_point point; /* DP_POINT_PLACE: an instruction */
	bool plain;          /* the event's name is only the function's */
	bool bound;          /* valid only in this build of the module */
	const char *when;    /* a further condition, or NULL */
	const char *called;  /* the event's name instead of a function's, or NULL */
	const char *label;   /* the same for people, or NULL */
	bool enters;         /* as in struct dp_typed */
	size_t entry;
	uint64_t early;                /* dp_expand_early() */
	bool tree_enters, tails, root; /* as in struct dp_typed */
	size_t tree;
};

/* Adds a copy of probe `from`, which is not a pattern. */
struct dp_error *dp_expand_copy(struct dp_expander *x, size_t from) DP_MUST_CHECK;
/* Adds one of the probes that `from` stands for. The caller must make its name unique. `ret` may be NULL. */
struct dp_error *dp_expand_add(struct dp_expander *x, size_t from, const struct dp_expand_place *at,
                               struct dp_probe **ret) DP_MUST_CHECK;
/* Adds a probe that every target refuses, so that it is counted and its reason is reported. Takes ownership of `why`. */
struct dp_error *dp_expand_add_refused(struct dp_expander *x, size_t from, const struct dp_expand_place *at,
                                       struct dp_error *why) DP_MUST_CHECK;
/* expand_titles.c: what people read instead of the name of a probe made from `from`. */
struct dp_error *dp_expand_title(struct dp_expander *x, size_t from, const struct dp_expand_place *at,
                                 struct dp_probe *p) DP_MUST_CHECK;
/* When all names are final: makes the titles of different functions different. */
struct dp_error *dp_expand_titles_finish(struct dp_trace_spec *trace, const struct dp_image *image) DP_MUST_CHECK;
/* expand_syscalls.c: adds the sites of a system call. */
struct dp_error *dp_expand_calls(struct dp_expander *x, size_t from) DP_MUST_CHECK;
/*
 * expand_whole.c: which contexts (bit i: context i) the function's calls have as they were at the entry. If there are any, each
 * call is one event.
 */
uint64_t dp_expand_early(struct dp_expander *x, size_t from, const struct dp_function_points *fp);
/* Adds the probe at the entry; *ret is for `entry` of the returns. */
struct dp_error *dp_expand_entry(struct dp_expander *x, size_t from, const struct dp_function *f, size_t *ret) DP_MUST_CHECK;
/* What the half of a call records, and its condition: from what was typed for the whole. */
struct dp_error *dp_expand_half(struct dp_typed *t, const struct dp_expand_place *at) DP_MUST_CHECK;
/* expand_tree.c: adds what a tree of calls needs of the function, and of those that it calls. */
struct dp_error *dp_expand_tree(struct dp_expander *x, size_t from, const struct dp_function *f) DP_MUST_CHECK;
void dp_expand_tree_fini(struct dp_expander *x);
/* expand_inside.c: adds a site inside of a function. */
struct dp_error *dp_expand_inside(struct dp_expander *x, size_t from, const struct dp_selected *s) DP_MUST_CHECK;
/* "foo (inlined in bar)" -> "foo_inlined_in_bar", "ns::foo<int>" -> "ns_foo_int"; malloc'ed. */
char *dp_expand_called(const char *label);
/* A name without pattern and offset. It may also stand for inlined copies and overloads, which go to `add`. */
typedef struct dp_error *dp_expand_one_function(struct dp_expander *x, size_t from, const struct dp_selected *s);
bool dp_expand_is_plain(const struct dp_probe *p);
struct dp_error *dp_expand_plain(struct dp_expander *x, size_t from, dp_expand_one_function *add) DP_MUST_CHECK;

#endif

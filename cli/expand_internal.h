/* SPDX-License-Identifier: MIT */
/* The makings of an expansion: what has been made so far, and how one more probe is made. */
#ifndef DP_CLI_EXPAND_INTERNAL_H
#define DP_CLI_EXPAND_INTERNAL_H

#include "cli/expand.h"
#include "cli/names.h"
#include "cli/texts.h"

struct dp_expander {
	const struct dp_options *from;
	struct dp_image *image;
	struct dp_texts *texts;
	struct dp_names names;
	struct dp_expansion out;
	size_t capacity, notes;
};

struct dp_expand_place {                 /* one of the probes that a pattern stands for */
	const struct dp_function *f;     /* which it is spelled by */
	const struct dp_function *named; /* which the event is called after; NULL: the same */
	uint64_t offset;
	enum dp_point point; /* PLACE: an instruction */
	bool plain;          /* the name is the function's alone */
	bool bound;          /* only in this build of the module */
	const char *when;    /* a further condition, or NULL */
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

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Replaces patterns, returns and whole functions by probes of one site each. This is the first step of a run. The new specs are
 * filled in so that they name the same site in every target; the first one need not search for it.
 */
#ifndef DP_SESSION_EXPAND_EXPAND_H
#define DP_SESSION_EXPAND_EXPAND_H

#include "session/trace_spec.h"

struct dp_expansion {
	struct dp_trace_spec trace; /* a copy; it owns only `probe` and `typed` */
	size_t matched;             /* probes made from patterns */
};

/* Whether there is anything to expand. */
bool dp_expands(const struct dp_trace_spec *trace);
/* Uses the functions of `image`, the first target's. Logs the number of probes, and functions with exits that it cannot find. */
struct dp_error *dp_expand(const struct dp_trace_spec *trace, struct dp_image *image, struct dp_expansion *ret) DP_MUST_CHECK;
void dp_expansion_fini(struct dp_expansion *e);

#endif

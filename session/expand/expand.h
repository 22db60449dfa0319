/* SPDX-License-Identifier: MIT */
/*
 * Patterns, returns and whole functions become probes of one place each, before anything else looks at the probes. They are
 * spelled so that the same words name the same place in every target.
 */
#ifndef DP_SESSION_EXPAND_H
#define DP_SESSION_EXPAND_H

#include "session/trace_spec.h"

struct dp_expansion {
	struct dp_trace_spec trace; /* as they were but for probe, typed and nprobes, which alone it owns */
	size_t matched;            /* probes that patterns stood for */
};

/* Is there anything to expand? */
bool dp_expands(const struct dp_trace_spec *trace);
/*
 * By the functions of `image`, which is the first target's. Logs how many probes there are, and of which functions it
 * cannot know all exits.
 */
struct dp_error *dp_expand(const struct dp_trace_spec *trace, struct dp_image *image, struct dp_expansion *ret) DP_MUST_CHECK;
void dp_expansion_fini(struct dp_expansion *e);

#endif

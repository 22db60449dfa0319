/* SPDX-License-Identifier: MIT */
/* The event classes of a recorded trace, from its dynprobe/classes.json. A trace is untrusted input: everything is checked. */
#ifndef DP_OUTPUT_TRACE_LAYOUT_H
#define DP_OUTPUT_TRACE_LAYOUT_H

#include "base/arena.h"
#include "output/output.h"

struct dp_trace_layout {
	uint8_t uuid[16];
	int64_t clock_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC in ns */
	char boot[37];        /* "" if unknown */
	struct dp_event_class *class;
	struct dp_decoder *decoder; /* of each class */
	size_t n;
	/* Owned, what the classes point to: */
	struct dp_fields *fields;
	struct dp_arena arena;
};

/* Parses the text. DP_TAG_BAD_TRACE if it is damaged, or of a later version. */
struct dp_error *dp_trace_layout_parse(const char *text, size_t len, struct dp_trace_layout *ret) DP_MUST_CHECK;
void dp_trace_layout_fini(struct dp_trace_layout *layout);
/* The length of a payload of class `i`, of which `left` bytes are there; SIZE_MAX if it is damaged. */
size_t dp_trace_layout_length(const struct dp_trace_layout *layout, unsigned i, const uint8_t *payload, size_t left);
/* Makes the decoders, after the classes. */
struct dp_error *dp_trace_layout_finish(struct dp_trace_layout *layout) DP_MUST_CHECK;

#endif

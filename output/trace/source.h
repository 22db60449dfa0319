/* SPDX-License-Identifier: MIT */
/* One trace as a sequence of events, whoever recorded it. Implementations embed struct dp_trace_source as their first member. */
#ifndef DP_OUTPUT_TRACE_SOURCE_H
#define DP_OUTPUT_TRACE_SOURCE_H

#include "output/output.h"

struct dp_trace_source;
struct dp_trace_source_ops {
	/* Fills in the next event, in the order of time. What it points to is valid until the next call. False at the end. */
	bool (*next)(struct dp_trace_source *s, struct dp_event *ret);
	/* The times of the first and the last event, before the first call of next(); false if there is none. */
	bool (*bounds)(struct dp_trace_source *s, uint64_t *begin, uint64_t *end);
	/* Events before this time are not wanted: next() may leave them out. NULL: it cannot. */
	void (*skip)(struct dp_trace_source *s, uint64_t from);
	/* Lost events, as far as the trace was read. */
	uint64_t (*lost)(struct dp_trace_source *s);
	/* Calls `each` with a line for each damage that was met. */
	void (*damages)(struct dp_trace_source *s, void (*each)(const char *text, void *data), void *data);
	void (*destroy)(struct dp_trace_source *s);
};

struct dp_trace_source {
	const struct dp_trace_source_ops *ops;
	const struct dp_event_class *class; /* those that are known so far */
	size_t n;
	int64_t clock_offset; /* CLOCK_REALTIME - the clock of the events */
	char boot[37];        /* equal ones have the same clock; "" if unknown */
};

#endif

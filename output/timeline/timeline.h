/* SPDX-License-Identifier: MIT */
/*
 * A page of recorded events: timeline by thread, latency, tables, flame graph, search. The events are columns of small numbers,
 * deflated in parts, so that a million of them is a file that a browser opens; the script unpacks them part by part.
 */
#ifndef DP_OUTPUT_TIMELINE_TIMELINE_H
#define DP_OUTPUT_TIMELINE_TIMELINE_H

#include "output/output.h"

#define DP_TIMELINE_MOST UINT64_C(5000000) /* events of a page */
#define DP_TIMELINE_NONE UINT64_MAX        /* no duration */

struct dp_timeline; /* opaque */
/* Begins the page; `to` is not closed. */
struct dp_error *dp_timeline_create(FILE *to, const char *title, struct dp_timeline **ret) DP_MUST_CHECK;
struct dp_timeline *dp_timeline_destroy(struct dp_timeline *t);

struct dp_timeline_event {
	uint64_t ns; /* in the order of time */
	pid_t pid, tid;
	const char *comm, *probe;
	uint64_t duration; /* ns, of a call that ended then; or DP_TIMELINE_NONE */
	uint32_t stack;    /* of dp_timeline_stack(), or 0 */
	const char *text;  /* one line, as the live view shows it, without the time */
	size_t n;
};
/* Frames outermost first. 0: out of memory, which dp_timeline_end() reports. */
uint32_t dp_timeline_stack(struct dp_timeline *t, const char *const *frame, size_t n);
struct dp_error *dp_timeline_add(struct dp_timeline *t, const struct dp_timeline_event *e) DP_MUST_CHECK;
/* A line for the page's head: "12 hits were lost". */
void dp_timeline_note(struct dp_timeline *t, const char *text);
/* Ends the page. `clock_offset`: CLOCK_REALTIME - the clock of the events. */
struct dp_error *dp_timeline_end(struct dp_timeline *t, int64_t clock_offset) DP_MUST_CHECK;
uint64_t dp_timeline_events(const struct dp_timeline *t);

/* timeline_trace.c: events of a recorded trace. */
struct dp_timeline_trace; /* opaque */
struct dp_error *dp_timeline_trace_create(struct dp_timeline *t, const struct dp_event_class *class, size_t n,
                                          struct dp_timeline_trace **ret) DP_MUST_CHECK;
struct dp_error *dp_timeline_trace_add(struct dp_timeline_trace *of, const struct dp_event *e) DP_MUST_CHECK;
/* Hits were lost before the next event: a system call's end may not be that of the beginning which was seen last. */
void dp_timeline_trace_gap(struct dp_timeline_trace *of);
/* Call it after the last event: adds the system calls that have not ended. */
struct dp_error *dp_timeline_trace_end(struct dp_timeline_trace *of) DP_MUST_CHECK;
struct dp_timeline_trace *dp_timeline_trace_destroy(struct dp_timeline_trace *of);

/* timeline_json.c: the page of a run that wrote NDJSON (docs/json.md). DP_TAG_BAD_TRACE: `from` is none. Ends the page. */
struct dp_error *dp_timeline_json(struct dp_timeline *t, FILE *from, const char *name) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * System calls as lines of text: one line for a call, when it has ended. A call that lasts, or that a signal handler interrupts,
 * has a line when that is seen (<unfinished ...>), and one at its end (<... read resumed>).
 */
#ifndef DP_OUTPUT_CALLS_CALL_STREAM_H
#define DP_OUTPUT_CALLS_CALL_STREAM_H

#include "output/calls/pairs.h"

#define DP_CALL_LASTS_NS UINT64_C(300000000)

enum dp_call_form {
	DP_CALL_WHOLE,
	DP_CALL_UNFINISHED,
	DP_CALL_RESUMED,
};
struct dp_call_shown {
	const struct dp_event *at;   /* whose time and thread the line has */
	const struct dp_event *rest; /* whose other fields follow */
	enum dp_call_form form;
	unsigned from; /* DP_CALL_RESUMED: the first argument that is not written yet */
	struct dp_call_line line;
};
typedef void (*dp_call_shown_fn)(const struct dp_call_shown *shown, void *data);

struct dp_call_stream; /* opaque */
struct dp_call_stream *dp_call_stream_create(const struct dp_event_class *classes, size_t n, dp_call_shown_fn show, void *data);
struct dp_call_stream *dp_call_stream_destroy(struct dp_call_stream *c);
struct dp_call_pairs *dp_call_stream_pairs(struct dp_call_stream *c);
/* Calls `show` for what must be written now. False if the event is none of a call's line: the caller writes it, after those
 * lines. */
bool dp_call_stream_event(struct dp_call_stream *c, const struct dp_event *e);
/* It is that time: calls that have lasted are shown. */
void dp_call_stream_until(struct dp_call_stream *c, uint64_t ns);
/* This image of earlier events is about to go: calls of its process are shown. */
void dp_call_stream_forget(struct dp_call_stream *c, const struct dp_image *image);
/* No event comes any more: all are shown. */
void dp_call_stream_end(struct dp_call_stream *c);
/* The line, without time and thread; with escape codes around the call's name, or "". */
void dp_put_call_shown(struct dp_buf *b, const struct dp_call_shown *shown, const char *color, const char *reset);

#endif

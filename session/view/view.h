/* SPDX-License-Identifier: MIT */
/*
 * Looking at recorded traces. The caller takes these steps, in this order: create, add for each trace, begin; then next for each
 * event, or tally for an aggregation.
 */
#ifndef DP_SESSION_VIEW_VIEW_H
#define DP_SESSION_VIEW_VIEW_H

#include "output/aggregations/aggregations.h"
#include "output/output.h"
#include "session/trace_spec.h"

struct dp_view_asked {
	const char *when;                   /* a condition on the recorded fields, or NULL */
	uint64_t last_ns;                   /* only so much before the last event; 0: all */
	uint64_t from_ns, to_ns;            /* after the first event; to_ns 0: all */
	uint64_t earlier_ns;                /* this period, but so much earlier, without its last moment */
	bool period;                        /* dp_view_period() will be asked; may be slow for traces that are not ours */
	const struct dp_asked *aggregation; /* or NULL: events */
};

struct dp_trace_view; /* opaque */
struct dp_error *dp_view_create(struct dp_trace_view **ret) DP_MUST_CHECK;
struct dp_trace_view *dp_view_destroy(struct dp_trace_view *v);
/* A trace, the pieces of a rotated one, or an LTTng session. DP_TAG_BAD_TRACE, DP_TAG_NO_BABELTRACE. */
struct dp_error *dp_view_add(struct dp_trace_view *v, const char *dir) DP_MUST_CHECK;
/*
 * Borrows `asked`. Errors are those of the condition and of the aggregation's expressions, and DP_TAG_BAD_TRACE if the traces begin
 * after a period that is to be `earlier_ns`. The classes are final.
 */
struct dp_error *dp_view_begin(struct dp_trace_view *v, const struct dp_view_asked *asked, const struct dp_event_class **class,
                               size_t *n) DP_MUST_CHECK;
/* The period that is looked at, in CLOCK_REALTIME ns, as far as the traces have events. False: there are none. Before the first event. */
bool dp_view_period(const struct dp_trace_view *v, uint64_t *begin, uint64_t *end);
/* A probe whose events are left out, because they have not all that the condition and the aggregation name; or NULL. */
const char *dp_view_lacks(const struct dp_trace_view *v);
/* The next event that is wanted; valid until the next call. False at the end. */
bool dp_view_next(struct dp_trace_view *v, struct dp_event *ret);
/* Reads all events; the rows are valid until the view is destroyed. */
struct dp_error *dp_view_tally(struct dp_trace_view *v, struct dp_aggs_shown *ret) DP_MUST_CHECK;
/* After the last event: calls whose return is not in the trace, or was not recorded. */
uint64_t dp_view_unfinished(const struct dp_trace_view *v);
/* As far as the traces were read: hits that were lost when they were recorded; events that the aggregation could not count; a
 * line for each damage. */
uint64_t dp_view_lost(const struct dp_trace_view *v);
uint64_t dp_view_failed(const struct dp_trace_view *v);
void dp_view_damages(const struct dp_trace_view *v, void (*each)(const char *text, void *data), void *data);

#endif

/* SPDX-License-Identifier: MIT */
/* Aggregations of recorded events: the rows that a run with the same options would have shown. */
#ifndef DP_SESSION_VIEW_TALLY_H
#define DP_SESSION_VIEW_TALLY_H

#include "output/aggregations/aggregations.h"
#include "session/trace_spec.h"
#include "session/view/eval.h"

struct dp_tally; /* opaque */
/* The classes are borrowed; those without the fields are left out, *missing is the first of them or SIZE_MAX. DP_TAG_NO_VARIABLE:
 * no class has the fields; DP_TAG_USAGE: there is no such key. */
struct dp_error *dp_tally_create(const struct dp_asked *asked, const struct dp_view_source *of, struct dp_tally **ret,
                                 size_t *missing) DP_MUST_CHECK;
struct dp_tally *dp_tally_destroy(struct dp_tally *t);
/* Adds an event. False: out of memory. */
bool dp_tally_event(struct dp_tally *t, const struct dp_view_values *values);
/* The rows; `seconds` is the length of the period. Valid until the tally changes; false: out of memory. */
bool dp_tally_shown(struct dp_tally *t, double seconds, struct dp_aggs_shown *ret);
/* Events that could not be counted: a field was unreadable, a divisor was 0; there were too many different keys. */
uint64_t dp_tally_failed(const struct dp_tally *t);

#endif

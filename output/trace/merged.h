/* SPDX-License-Identifier: MIT */
/* Several traces as one sequence of events, by time. Classes that are alike are one class. */
#ifndef DP_OUTPUT_TRACE_MERGED_H
#define DP_OUTPUT_TRACE_MERGED_H

#include "output/trace/source.h"

struct dp_merged; /* opaque */
struct dp_error *dp_merged_create(struct dp_merged **ret) DP_MUST_CHECK;
struct dp_merged *dp_merged_destroy(struct dp_merged *m);
/* Adds the trace in `dir`; those of its sub-folders, if it has none itself (--rotate). DP_TAG_BAD_TRACE. */
struct dp_error *dp_merged_add(struct dp_merged *m, const char *dir) DP_MUST_CHECK;
/* Call it after the last dp_merged_add(). The classes are then final: the array is the merged traces'. */
struct dp_error *dp_merged_classes(struct dp_merged *m, const struct dp_event_class **ret, size_t *n) DP_MUST_CHECK;
/* The first and the last time; false: there are no events. May be slow for traces that are not ours. Before dp_merged_next(). */
bool dp_merged_bounds(struct dp_merged *m, uint64_t *begin, uint64_t *end);
/* Only events of [from, to] are wanted. */
void dp_merged_limit(struct dp_merged *m, uint64_t from, uint64_t to);
/* The next event, with the merged class; valid until the next call. False at the end. */
bool dp_merged_next(struct dp_merged *m, struct dp_event *ret);
/* CLOCK_REALTIME - the times of the events. */
int64_t dp_merged_clock_offset(const struct dp_merged *m);
uint64_t dp_merged_lost(const struct dp_merged *m);
void dp_merged_damages(const struct dp_merged *m, void (*each)(const char *text, void *data), void *data);

#endif

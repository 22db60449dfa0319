/* SPDX-License-Identifier: MIT */
/* Between the table (aggregations_text.c) and the histograms (aggregations_chart.c). */
#ifndef DP_OUTPUT_AGGREGATIONS_AGGREGATIONS_INTERNAL_H
#define DP_OUTPUT_AGGREGATIONS_AGGREGATIONS_INTERNAL_H

#include "output/aggregations/aggregations.h"

/* The probe's name and its key, without a backtrace. */
void dp_aggs_put_name(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row);
/* The backtraces, a line for each frame. */
void dp_aggs_put_frames(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row);
/* A row's histograms, from the first bucket that is not empty to the last. */
void dp_aggs_put_charts(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row);

#endif

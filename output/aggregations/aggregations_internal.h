/* SPDX-License-Identifier: MIT */
/* What the reports of rows share: the table, the histograms, JSON, and the comparison of two periods. */
#ifndef DP_OUTPUT_AGGREGATIONS_AGGREGATIONS_INTERNAL_H
#define DP_OUTPUT_AGGREGATIONS_AGGREGATIONS_INTERNAL_H

#include "output/aggregations/aggregations.h"

/* The probe's name and its key, without a backtrace. */
void dp_aggs_put_name(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row);
/* The backtraces, a line for each frame. */
void dp_aggs_put_frames(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row);
/* What the names of the rows are: "probe, by KEY". */
void dp_aggs_put_title(struct dp_buf *b, const struct dp_aggs_shown *a);
/* Members of a JSON object: who the row is, without what it counted; and what it counted. */
void dp_aggs_put_json_name(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row);
void dp_aggs_put_json_numbers(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row);
/* A row's histograms, from the first bucket that is not empty to the last. */
void dp_aggs_put_charts(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row);

#endif

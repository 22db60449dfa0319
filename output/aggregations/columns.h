/* SPDX-License-Identifier: MIT */
/* The columns of numbers that a table of aggregations has, one or more for each aggregation. */
#ifndef DP_OUTPUT_AGGREGATIONS_COLUMNS_H
#define DP_OUTPUT_AGGREGATIONS_COLUMNS_H

#include "output/aggregations/aggregations.h"
#include "output/aggregations/units.h"

enum dp_agg_column_kind {
	DP_COLUMN_HITS,
	DP_COLUMN_RATE, /* hits per second */
	DP_COLUMN_SUM,
	DP_COLUMN_SUM_RATE, /* the sum per second; of durations: of seconds */
	DP_COLUMN_AVERAGE,
	DP_COLUMN_MIN,
	DP_COLUMN_MAX,
	DP_COLUMN_PERCENTILE,
};
struct dp_agg_column {
	enum dp_agg_column_kind kind;
	unsigned percent;
	size_t part;
	char title[64];
};
#define DP_AGG_COLUMNS_MOST 48
/* Returns their number. */
size_t dp_agg_columns(const struct dp_aggs_shown *a, struct dp_agg_column ret[DP_AGG_COLUMNS_MOST]);
/* False: there is none without a hit, or it is beyond a linear histogram. */
bool dp_agg_column_value(const struct dp_aggs_shown *a, const struct dp_agg_column *c, const struct dp_agg_row *row, double *ret);
void dp_agg_column_text(const struct dp_aggs_shown *a, const struct dp_agg_column *c, const struct dp_agg_row *row,
                        char text[DP_UNITS_TEXT]);

#endif

/* SPDX-License-Identifier: MIT */
/* Values of aggregations as people read them. */
#ifndef DP_OUTPUT_AGGREGATIONS_UNITS_H
#define DP_OUTPUT_AGGREGATIONS_UNITS_H

#include "output/aggregations/aggregations.h"

#define DP_UNITS_TEXT 48u
/* As base/duration.h, also below 0. */
void dp_units_ns(char text[DP_UNITS_TEXT], double ns);
/* A value of the part's: with its unit, or as the number that it is. */
void dp_units_value(const struct dp_agg_part *part, char text[DP_UNITS_TEXT], int64_t v);
void dp_units_average(const struct dp_agg_part *part, char text[DP_UNITS_TEXT], double v);
void dp_units_percentile(const struct dp_agg_part *part, char text[DP_UNITS_TEXT], const uint64_t *cells, unsigned percent);
/* A bound of a bucket, exactly. */
void dp_units_bound(const struct dp_agg_part *part, char text[DP_UNITS_TEXT], int64_t v);
void dp_units_rate(char text[DP_UNITS_TEXT], double per_second);

#endif

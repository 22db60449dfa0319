/* SPDX-License-Identifier: MIT */
/* Two periods side by side: the rows of both, those whose numbers changed most first. */
#ifndef DP_OUTPUT_AGGREGATIONS_COMPARED_H
#define DP_OUTPUT_AGGREGATIONS_COMPARED_H

#include "output/aggregations/aggregations.h"

/* `shown` has the same aggregations and keys twice; `seconds` are the lengths of the periods, `begin_ns` is CLOCK_REALTIME. */
struct dp_compared {
	struct {
		struct dp_aggs_shown shown;
		uint64_t begin_ns;
	} before, after;
};
/* False: out of memory. */
bool dp_compared_text(const struct dp_compared *c, FILE *to);
bool dp_compared_json(const struct dp_compared *c, FILE *to);

#endif

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
/* A period of a run that has passed. The names of its rows stay the run's, so they must not be backtraces. */
struct dp_compared_kept {
	struct dp_aggs_shown shown;
	struct dp_agg_row *row; /* NULL: there is none yet */
	uint64_t *cells;
	uint64_t begin_ns;
};
/* Keeps it instead of the one before. False: out of memory, and none is kept. */
bool dp_compared_keep(struct dp_compared_kept *k, const struct dp_aggs_shown *a, uint64_t begin_ns);
void dp_compared_kept_fini(struct dp_compared_kept *k);
/* False: out of memory. */
bool dp_compared_text(const struct dp_compared *c, FILE *to);
bool dp_compared_json(const struct dp_compared *c, FILE *to);

#endif

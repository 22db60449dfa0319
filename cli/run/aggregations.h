/* SPDX-License-Identifier: MIT */
/* Aggregations on the terminal. */
#ifndef DP_CLI_RUN_AGGREGATIONS_H
#define DP_CLI_RUN_AGGREGATIONS_H

#include "cli/run/trace.h"
#include "output/reports/aggregations.h"

/* As the options say: a table, folded stacks, or JSON. */
void dp_aggs_print(const struct dp_options *options, const struct dp_aggs_shown *shown, FILE *to);
/* Reads the cells when it is time to; prints the changes at the end of each --interval. */
void dp_aggs_round(struct dp_trace *t);
/* After the removal: prints everything. */
void dp_aggs_final(struct dp_trace *t);

#endif

/* SPDX-License-Identifier: MIT */
/* Aggregations on the terminal, and as a flame graph. */
#ifndef DP_CLI_RUN_AGGREGATIONS_H
#define DP_CLI_RUN_AGGREGATIONS_H

#include "cli/run/flame.h"
#include "cli/run/trace.h"
#include "output/aggregations/aggregations.h"

/* As the options say: a table, folded stacks, or JSON; nothing if a flame graph is all that was asked for. */
void dp_aggs_print(const struct dp_options *options, const struct dp_aggs_shown *shown, FILE *to);
/* --flame, if it was given: of these rows. */
struct dp_error *dp_aggs_flame(const struct dp_options *options, const struct dp_aggs_shown *shown,
                               const struct dp_flame_about *about) DP_MUST_CHECK;
/* "redis-server (pid 4242)" */
void dp_trace_program(const struct dp_trace *t, struct dp_buf *b);
/* dp_flame_place(), for the file of -f openmetrics, too. */
struct dp_error *dp_aggs_place(const struct dp_options *options) DP_MUST_CHECK;
/* Before the run: --top on a terminal is drawn again every second. */
void dp_aggs_begin(struct dp_trace *t);
/* Reads the cells when it is time to; prints the changes at the end of each --interval. */
void dp_aggs_round(struct dp_trace *t);
/* After the removal: prints everything. */
struct dp_error *dp_aggs_final(struct dp_trace *t) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/* Aggregations on the terminal, and as a flame graph. */
#ifndef DP_CLI_RUN_AGGREGATIONS_H
#define DP_CLI_RUN_AGGREGATIONS_H

#include "cli/run/trace.h"
#include "output/aggregations/aggregations.h"
#include "output/flame/flame.h"

/* As the options say: a table, folded stacks, or JSON; nothing if a flame graph is all that was asked for. */
void dp_aggs_print(const struct dp_options *options, const struct dp_aggs_shown *shown, FILE *to);
/* --flame, if it was given: of these rows. */
struct dp_error *dp_aggs_flame(const struct dp_options *options, const struct dp_aggs_shown *shown,
                               const char *unit) DP_MUST_CHECK;
/* Could the file be written? Checked before a process is touched. */
struct dp_error *dp_flame_place(const struct dp_options *options) DP_MUST_CHECK;
/* The same for the file of -f openmetrics, too. */
struct dp_error *dp_aggs_place(const struct dp_options *options) DP_MUST_CHECK;
/* Writes the file of --flame, and says so. */
struct dp_error *dp_flame_save(const struct dp_options *options, struct dp_flame *f,
                               const struct dp_flame_shown *shown) DP_MUST_CHECK;
/* Before the run: --top on a terminal is drawn again every second. */
void dp_aggs_begin(struct dp_trace *t);
/* Reads the cells when it is time to; prints the changes at the end of each --interval. */
void dp_aggs_round(struct dp_trace *t);
/* After the removal: prints everything. */
struct dp_error *dp_aggs_final(struct dp_trace *t) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/* Aggregations on the terminal. */
#ifndef DP_CLI_ANSWERS_H
#define DP_CLI_ANSWERS_H

#include "cli/run/trace.h"
#include "output/reports/answers.h"

/* As the options say: a table, folded stacks, or JSON. */
void dp_answers_print(const struct dp_options *options, const struct dp_answers_shown *shown, FILE *to);
/* Reads the cells when it is time to; prints the changes at the end of each --interval. */
void dp_answers_round(struct dp_trace *t);
/* After the removal: prints everything. */
void dp_answers_final(struct dp_trace *t);

#endif

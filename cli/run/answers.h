/* SPDX-License-Identifier: MIT */
/* Aggregations on the terminal: what was counted in all targets, as rows. */
#ifndef DP_CLI_ANSWERS_H
#define DP_CLI_ANSWERS_H

#include "cli/run/trace.h"

/* Reads the cells when it is time to; shows what came since the last time if --interval says so. */
void dp_answers_round(struct dp_trace *t);
/* After the removal: everything, exactly. */
void dp_answers_final(struct dp_trace *t);
void dp_answers_fini(struct dp_trace *t);

#endif

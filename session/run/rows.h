/* SPDX-License-Identifier: MIT */
/* Aggregations as rows: the cells of all targets, read, summed and sorted. */
#ifndef DP_SESSION_RUN_ROWS_H
#define DP_SESSION_RUN_ROWS_H

#include "output/reports/aggregations.h"
#include "session/run/run.h"

struct dp_rows; /* opaque */
/* Reads the cells when it is time to. True: --interval says that rows are to be shown now; dp_rows_next() follows. */
bool dp_rows_round(struct dp_run *run);
/* The next interval begins. */
void dp_rows_next(struct dp_run *run);
/* After the removal: reads everything, exactly. False: the run has no aggregations. *failed: rows are missing, for lack of
 * memory. */
bool dp_rows_final(struct dp_run *run, bool *failed);
/* What was read last; `delta`: only what came since the last interval. Valid until the next call; false without memory. */
bool dp_rows_shown(struct dp_run *run, bool delta, struct dp_aggs_shown *ret);
void dp_rows_fini(struct dp_run *run);

#endif

/* SPDX-License-Identifier: MIT */
/* Aggregations as rows: the cells of all targets, read, summed and sorted. */
#ifndef DP_SESSION_RUN_ROWS_H
#define DP_SESSION_RUN_ROWS_H

#include "output/aggregations/aggregations.h"
#include "session/run/run.h"

struct dp_rows; /* opaque */
/* Reads the cells if it is time to. True: an --interval is over; show the rows, then call dp_rows_next(). */
bool dp_rows_round(struct dp_run *run);
/* Begins the next interval. */
void dp_rows_next(struct dp_run *run);
/* After the removal: reads the final values. False: the run has no aggregations. *failed: rows are missing (out of memory). */
bool dp_rows_final(struct dp_run *run, bool *failed);
/* The rows as last read; `delta`: only the change since the last interval. Valid until the next call; false if out of memory. */
bool dp_rows_shown(struct dp_run *run, bool delta, struct dp_aggs_shown *ret);
/* Keeps what session number `k` has counted; it is about to be destroyed. Its probes must have been removed. */
void dp_rows_keep(struct dp_run *run, size_t k);
void dp_rows_fini(struct dp_run *run);

#endif

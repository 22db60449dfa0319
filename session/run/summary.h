/* SPDX-License-Identifier: MIT */
/* The figures of a run for its summary. */
#ifndef DP_SESSION_RUN_SUMMARY_H
#define DP_SESSION_RUN_SUMMARY_H

#include "output/output.h"
#include "session/run/run.h"

/* The row of probe `i` in one process. */
void dp_run_summary_row(const struct dp_run *run, const struct dp_session *s, size_t i, struct dp_summary_probe *ret);
/* Has no process of the run a place for probe `i`, which only session number `k` is to report? See struct dp_place, absent. */
bool dp_run_is_nowhere(const struct dp_run *run, size_t k, size_t i);
/* Adds what is of one process. */
void dp_run_summary_session(const struct dp_session *s, struct dp_summary *sum);
/* The caller frees ret->left, whose texts are the run's. False if out of memory. */
bool dp_run_children(const struct dp_run *run, struct dp_summary_children *ret);
/* False if hits do not wait where their ring is full. */
bool dp_run_waits(const struct dp_run *run, struct dp_summary_waits *ret);
/* Fills all but the recording, the snapshots, the waits, the children and the programs. False if out of memory; else call
 * dp_run_summary_fini(). */
bool dp_run_summary(const struct dp_run *run, struct dp_summary *ret);
void dp_run_summary_fini(struct dp_summary *s);

#endif

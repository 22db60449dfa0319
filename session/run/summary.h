/* SPDX-License-Identifier: MIT */
/* The figures of a run for its summary. */
#ifndef DP_SESSION_RUN_SUMMARY_H
#define DP_SESSION_RUN_SUMMARY_H

#include "output/output.h"
#include "session/run/run.h"

/* The caller frees ret->left, whose texts are the run's. False if out of memory. */
bool dp_run_children(const struct dp_run *run, struct dp_summary_children *ret);
/* Fills all but the recording, the snapshots and the children. False if out of memory; else call dp_run_summary_fini(). */
bool dp_run_summary(const struct dp_run *run, struct dp_summary *ret);
void dp_run_summary_fini(struct dp_summary *s);

#endif

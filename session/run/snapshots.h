/* SPDX-License-Identifier: MIT */
/* --snapshot: hits that wait, and the snapshots that are taken of them while the run goes on. */
#ifndef DP_SESSION_RUN_SNAPSHOTS_H
#define DP_SESSION_RUN_SNAPSHOTS_H

#include "session/run/run.h"

struct dp_snapshots; /* opaque */
/* Loads the pmodules, rehearses; nothing without --snapshot. Before anything is put into a process. */
struct dp_error *dp_snapshots_begin(struct dp_run *run) DP_MUST_CHECK;
/* Takes a snapshot where a hit waits; a failure is a note. */
void dp_snapshots_round(struct dp_run *run);
/* Before the probes go: nobody waits any more. */
void dp_snapshots_leave(struct dp_run *run);
/* What became of the hits, behind dp_snapshots_leave(); false without --snapshot. */
bool dp_snapshots_counts(const struct dp_run *run, struct dp_summary_snapshots *ret);
/* The same in words. */
void dp_snapshots_report(const struct dp_run *run);
void dp_snapshots_fini(struct dp_run *run);
/* How soon to look again; `ms` is what the run would rest. */
int dp_snapshots_rest(const struct dp_run *run, int ms);

#endif

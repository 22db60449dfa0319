/* SPDX-License-Identifier: MIT */
/* --snapshot: hits wait at their probes until a snapshot of their process is taken, during the run. */
#ifndef DP_SESSION_RUN_SNAPSHOTS_H
#define DP_SESSION_RUN_SNAPSHOTS_H

#include "session/run/run.h"

struct dp_snapshots; /* opaque */
/* Loads the pmodules and prefetches. Call it before anything in a process changes. Does nothing without --snapshot. */
struct dp_error *dp_snapshots_begin(struct dp_run *run) DP_MUST_CHECK;
/* A process that comes later, before its probes are installed: its hits wait, too. DP_TAG_SECCOMP. */
struct dp_error *dp_snapshots_admit(const struct dp_run *run, struct dp_session *session) DP_MUST_CHECK;
/* One that goes before the end of the run, after its probes: its hits are counted. */
void dp_snapshots_part(const struct dp_run *run, const struct dp_session *session);
/* Takes a snapshot of each process where a hit waits; a failure is a note. */
void dp_snapshots_round(struct dp_run *run);
/* Call it before the probes are removed: hits do not wait any more. */
void dp_snapshots_leave(struct dp_run *run);
/* The counters; final after the probes are removed. False without --snapshot. */
bool dp_snapshots_counts(const struct dp_run *run, struct dp_summary_snapshots *ret);
void dp_snapshots_fini(struct dp_run *run);
/* How long to sleep before the next round; `ms` is what the run would sleep. */
int dp_snapshots_rest(const struct dp_run *run, int ms);

#endif

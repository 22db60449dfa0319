/* SPDX-License-Identifier: MIT */
/* The processes of a run: one of several that fails is left out, and the run goes on with the others. */
#ifndef DP_SESSION_RUN_PROCESSES_H
#define DP_SESSION_RUN_PROCESSES_H

#include "session/run/run.h"

/*
 * Opens, or does `act` for, each process. One that fails is closed and goes to run->missing, with a warning; what `act` did for
 * the others stays. It is an error if the process is the only one that was asked for, if none is left (the first of this call's
 * errors), or if a signal came.
 */
struct dp_error *dp_run_open_each(struct dp_run *run) DP_MUST_CHECK;
struct dp_error *dp_run_each(struct dp_run *run, struct dp_error *(*act)(struct dp_run *run, struct dp_session *s)) DP_MUST_CHECK;
struct dp_error *dp_run_open_one(struct dp_run *run, pid_t pid) DP_MUST_CHECK; /* unless it is open */
struct dp_error *dp_run_add_session(struct dp_run *run, struct dp_session *s) DP_MUST_CHECK; /* takes it */

#endif

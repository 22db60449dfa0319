/* SPDX-License-Identifier: MIT */
/* Resident probes: what `dynprobe attach` leaves for later commands. */
#ifndef DP_SESSION_RUN_RUN_KEEP_H
#define DP_SESSION_RUN_RUN_KEEP_H

#include "session/run/run.h"

/* Before installing: tells the injector which resident probe is replaced (run->supersedes); refuses names that are in use. */
struct dp_error *dp_run_keep_announce(struct dp_run *run) DP_MUST_CHECK;
/* After installing: leaves the probes in their processes, and logs how to manage them. */
struct dp_error *dp_run_keep(struct dp_run *run) DP_MUST_CHECK;

#endif

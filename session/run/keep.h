/* SPDX-License-Identifier: MIT */
/* Probes that outlive the command: what `dynprobe attach` leaves for later commands. */
#ifndef DP_SESSION_RUN_KEEP_H
#define DP_SESSION_RUN_KEEP_H

#include "session/run/run.h"

/* Before installing: tells the injector which standing probe gives way (run->supersedes); refuses names that stand already. */
struct dp_error *dp_keep_announce(struct dp_run *run) DP_MUST_CHECK;
/* After installing: leaves the session's probes in its target, and tells the user what that means. */
struct dp_error *dp_keep(struct dp_run *run, struct dp_session *s) DP_MUST_CHECK;

#endif

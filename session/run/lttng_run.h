/* SPDX-License-Identifier: MIT */
/* Which sink a run uses (decision 3), and the user's LTTng session when it is LTTng. */
#ifndef DP_SESSION_RUN_LTTNG_RUN_H
#define DP_SESSION_RUN_LTTNG_RUN_H

#include "session/run/run.h"

/*
 * Decides, after the targets are open and before anything in them changes: run->use_lttng. LTTng where it was asked for (then what
 * stands against it is an error), or where the user's current session already wants our events (then it is said, and the ring
 * is used).
 */
struct dp_error *dp_lttng_choose(struct dp_run *run) DP_MUST_CHECK;
/* Opens or creates the session, enables the events in it, starts it. Says where the events go. Without a daemon it does nothing but say
 * so, where no session was asked for. */
struct dp_error *dp_lttng_begin(struct dp_run *run) DP_MUST_CHECK;
/* Does the session record the events (or, if it is not started, has the daemon heard of them)? Waits a little; says so if not. */
void dp_lttng_settle(struct dp_run *run);
/* Ends a session that the run created; the trace stays. */
struct dp_error *dp_lttng_end(struct dp_run *run) DP_MUST_CHECK;

#endif

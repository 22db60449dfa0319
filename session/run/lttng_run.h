/* SPDX-License-Identifier: MIT */
/* The choice of a run's sink (decision 0003), and the LTTng session that records its events. */
#ifndef DP_SESSION_RUN_LTTNG_RUN_H
#define DP_SESSION_RUN_LTTNG_RUN_H

#include "session/run/run.h"

/*
 * Sets run->use_lttng. Call it when the targets are open, before anything in them changes. The sink is LTTng if the user asked
 * for it; then an obstacle is an error. Without a request it is LTTng if the user's current session has a rule for our events;
 * then an obstacle means that the ring is used, and run->why_ring says why.
 */
struct dp_error *dp_lttng_choose(struct dp_run *run) DP_MUST_CHECK;
/*
 * Opens or creates the session, enables the events in it, starts it, and logs where the events go. Without a session daemon and
 * without a requested session it only logs that.
 */
struct dp_error *dp_lttng_begin(struct dp_run *run) DP_MUST_CHECK;
/* Waits until the session records the events (or, if it is not started, lists them), for a bounded time; logs if it does not. */
void dp_lttng_settle(struct dp_run *run);
/* For a process that starts during the run: its probes emit through LTTng if those of the others do. Call it before installing
 * them. */
struct dp_error *dp_lttng_join(const struct dp_run *run, struct dp_session *s) DP_MUST_CHECK;
/* After that, while the process is held: waits until the session records its events, for a short time. Counts hits as lost if
 * not. */
void dp_lttng_settle_one(struct dp_run *run, struct dp_session *s);
/* Closes a session that the run created; the trace stays. */
struct dp_error *dp_lttng_end(struct dp_run *run) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
#include "session/run/lttng_run.h"

#include "output/lttng/lttng.h"
#include "session/run/processes.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUERY_NS  UINT64_C(3000000000)
#define TALK_NS   UINT64_C(10000000000)
#define LISTED_NS UINT64_C(2000000000)
#define SOON_NS   UINT64_C(200000000) /* after this time, hits that the session does not record are counted as lost */
#define WANTED_NS UINT64_C(2000000000)
#define POLL_NS   1000000L
#define HELD_NS   UINT64_C(1000000000) /* instead of WANTED_NS, for a process that waits in its exec meanwhile */
#define AGAIN_NS  UINT64_C(100000000)  /* instead of the others, if the session did not record the previous one's in that time */

static struct dp_error *check_one(struct dp_run *run, struct dp_session *s)
{
	(void)run;
	return dp_target_sink_check(s->target);
}

/* If LTTng was not requested, one process without it is a reason not to use it for any. */
static struct dp_error *check_all(const struct dp_run *run)
{
	for (size_t i = 0; i < run->nsessions; i++)
		DP_TRY(dp_target_sink_check(run->session[i]->target));
	return NULL;
}

static void use_lttng(struct dp_run *run)
{
	run->use_lttng = true;
	for (size_t i = 0; i < run->nsessions; i++)
		run->session[i]->lttng = true;
}

/* Sets run->why_ring. */
static void __attribute__((format(printf, 2, 3))) because(struct dp_run *run, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(run->why_ring, sizeof(run->why_ring), fmt, args);
	va_end(args);
}

static const char **event_names(const struct dp_trace_spec *trace)
{
	const char **names = calloc(trace->nprobes + 1, sizeof(*names));
	for (size_t i = 0; names && i < trace->nprobes; i++)
		names[i] = trace->probe[i].name;
	return names;
}

/* No sink was requested: the user's current session decides. If LTTng does not work, the ring is used. */
static void choose_by_session(struct dp_run *run)
{
	bool covers = false;
	dp_auto_free const char **names = event_names(run->trace);
	struct dp_error *err = dp_lttng_current(&run->lttng_session, names, run->trace->nprobes, &covers, QUERY_NS);
	const bool wanted = covers || (run->trace->sink == DP_SINK_CURRENT && run->lttng_session);
	if (!err && wanted)
		err = check_all(run);
	if (!err && wanted) {
		run->lttng_covered = covers;
		run->lttng_by_rule = !covers;
		use_lttng(run);
	} else if (err) {
		because(run, "not LTTng: %s [%s]", err->message, dp_tag_name(err->tag));
	} else if (run->lttng_session) {
		because(run, "the current LTTng session '%s' has no rule for %s", run->lttng_session,
		        run->trace->nprobes == 1 ? "it" : "all of them");
	} else {
		because(run, "there is no current LTTng session");
	}
	dp_error_destroy(err);
}

struct dp_error *dp_lttng_choose(struct dp_run *run)
{
	if (run->trace->sink == DP_SINK_RING)
		return NULL;
	if (run->trace->sink == DP_SINK_AUTO || run->trace->sink == DP_SINK_CURRENT) {
		/* A user who wants to see, count or record the events here has chosen the ring. */
		if (!run->trace->own_events)
			choose_by_session(run);
		return NULL;
	}
	DP_TRY(dp_run_each(run, check_one));
	if (!run->nsessions) /* --program: the only process cannot load the sink */
		return dp_take(run->missing[run->nmissing - 1].why, NULL);
	use_lttng(run);
	return NULL;
}

static void log_session(const struct dp_run *run)
{
	const char *name = dp_lttng_session(run->lttng);
	dp_trace_log(run->trace, DP_LOG_WARNING, "events go to the LTTng session '%s' (%s)%s%s", name,
	             run->lttng_covered             ? "its rules already include dynprobe:*"
	             : run->lttng_by_rule           ? "the current session, with a new rule for them"
	             : dp_lttng_created(run->lttng) ? "created for this run"
	                                            : "as requested",
	             run->trace->attach ? "" : "; Ctrl-C ends",
	             dp_lttng_active(run->lttng) ? "" : "; it is not started: lttng start");
	dp_trace_log(run->trace, DP_LOG_WARNING, "to view them: %s", dp_lttng_how_to_view(run->lttng));
}

static struct dp_error *enable(struct dp_run *run)
{
	const struct dp_trace_spec *trace = run->trace;
	dp_auto_free const char **names = event_names(trace);
	if (!names)
		return dp_error_nomem();
	return dp_lttng_enable(run->lttng, names, trace->nprobes, trace->filter);
}

/*
 * Like compiled-in tracepoints, probes can be installed without a session daemon, if no session was requested. A daemon that
 * starts later learns of them.
 */
static bool runs_without_daemon(const struct dp_trace_spec *trace)
{
	if (trace->session || trace->set_url || trace->live_us || trace->filter)
		return false;
	struct dp_error *absent = dp_lttng_reachable();
	if (!absent)
		return false;
	dp_trace_log(trace, DP_LOG_WARNING, "events go to no LTTng session yet: %s [%s]", absent->message,
	             dp_tag_name(absent->tag));
	dp_trace_log(trace, DP_LOG_WARNING,
	             "sessions of a daemon that starts later get them: lttng enable-event -u 'dynprobe:*'%s",
	             trace->attach ? "" : "; Ctrl-C ends");
	dp_error_destroy(absent);
	return true;
}

struct dp_error *dp_lttng_begin(struct dp_run *run)
{
	const struct dp_trace_spec *trace = run->trace;
	const struct dp_lttng_options lo = {
	        .session = run->lttng_covered || run->lttng_by_rule ? run->lttng_session : trace->session,
	        .set_url = trace->set_url,
	        .live_us = trace->live_us,
	        .name = dp_target_comm(run->session[0]->target),
	        .timeout_ns = trace->programs.n ? QUERY_NS : TALK_NS, /* a process may wait in its exec */
	};
	if (!run->lttng_covered && runs_without_daemon(trace))
		return NULL;
	DP_TRY(dp_lttng_open(&lo, &run->lttng));
	free(run->lttng_session);
	run->lttng_session = strdup(dp_lttng_session(run->lttng));
	if (!run->lttng_covered)
		DP_TRY(enable(run));
	if (!run->lttng_by_rule) /* like lttng enable-event, do not start a session that the user made */
		DP_TRY(dp_lttng_start(run->lttng));
	log_session(run);
	return NULL;
}

/* The session daemon enables a program's events on its own threads, milliseconds after it has learned of them. Hits before that
 * are not counted as lost. */
static bool await_wanted(struct dp_run *run, struct dp_session *s, uint64_t limit_ns)
{
	const uint64_t start = dp_now_ns();
	bool expected = false;
	while (!dp_session_wanted(s)) {
		if (dp_now_ns() >= start + limit_ns || dp_run_must_leave(run))
			return false;
		if (!expected && (expected = dp_now_ns() >= start + SOON_NS))
			dp_session_expect(s);
		nanosleep(&(struct timespec){0, POLL_NS}, NULL);
	}
	return true;
}

/* The session still does not record the events: logs why, if that is known. */
static void expect(struct dp_run *run, struct dp_session *s)
{
	struct dp_error *why = dp_target_sink_trouble(s->target);
	run->unheard |= why != NULL;
	dp_trace_log(run->trace, DP_LOG_WARNING,
	             "warning: the session '%s' does not record the events of %d%s%s; hits are counted as lost until it does",
	             dp_lttng_session(run->lttng), dp_target_pid(s->target), why ? ": " : "", why ? why->message : "");
	dp_error_destroy(why);
}

void dp_lttng_settle(struct dp_run *run)
{
	const struct dp_trace_spec *trace = run->trace;
	dp_auto_free const char **names = event_names(trace);
	bool answers = true; /* a daemon that does not is not waited for again, for each of many processes */
	for (size_t k = 0; run->lttng && names && k < run->nsessions && !dp_run_must_leave(run); k++) {
		const pid_t pid = dp_target_pid(run->session[k]->target);
		if (dp_lttng_active(run->lttng) && await_wanted(run, run->session[k], answers ? WANTED_NS : AGAIN_NS)) {
			/* LTTng opens an event's gate shortly before the session records the event. */
			dp_lttng_sync(run->lttng);
			continue;
		}
		answers = dp_lttng_wait_listed(run->lttng, pid, names, trace->nprobes, answers ? LISTED_NS : AGAIN_NS);
		if (!answers)
			dp_trace_log(run->trace, DP_LOG_WARNING, "the session daemon does not list the events of %d yet", pid);
		if (dp_lttng_active(run->lttng) && !dp_session_wanted(run->session[k]))
			expect(run, run->session[k]);
	}
}

struct dp_error *dp_lttng_join(const struct dp_run *run, struct dp_session *s)
{
	if (!run->use_lttng)
		return NULL;
	s->lttng = true;
	return dp_target_sink_check(s->target);
}

/* The sink's threads run while the process is held: they register the events, and wait for the session daemon's answer. */
void dp_lttng_settle_one(struct dp_run *run, struct dp_session *s)
{
	if (!run->lttng || !dp_lttng_active(run->lttng) || !dp_session_placed(s))
		return;
	const bool heard = await_wanted(run, s,
	                                run->unanswered                     ? AGAIN_NS
	                                : run->trace->max_wait_ns > HELD_NS ? run->trace->max_wait_ns
	                                                                    : HELD_NS);
	run->unanswered = !heard;
	if (heard) {
		dp_lttng_sync(run->lttng);
		return;
	}
	dp_session_expect(s);
	expect(run, s);
	run->unheard = true;
}

static void undo(const struct dp_run *run, struct dp_lttng *l)
{
	struct dp_error *err = dp_lttng_undo(l);
	if (err)
		dp_trace_log(run->trace, DP_LOG_WARNING, "the session '%s' may keep rules of this run: %s [%s]",
		             dp_lttng_session(l), err->message, dp_tag_name(err->tag));
	dp_error_destroy(err);
}

struct dp_error *dp_lttng_end(struct dp_run *run)
{
	struct dp_lttng *l = run->lttng;
	run->lttng = NULL;
	if (l && run->failed && !run->kept)
		undo(run, l);
	if (!l || !run->trace->attach || !run->kept)
		return dp_lttng_close(l, l && dp_lttng_created(l));
	dp_lttng_release(l);
	return NULL;
}

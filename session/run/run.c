/* SPDX-License-Identifier: MIT */
#include "session/run/run.h"

#include "session/process/session_aggs.h"
#include "session/process/session_full.h"
#include "session/process/session_scope.h"
#include "session/run/lttng_run.h"
#include "session/run/patterns.h"
#include "session/run/processes.h"
#include "session/run/rows.h"
#include "session/run/snapshots.h"
#include "session/run/starts.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define ENDING_MS 500

void dp_run_init(struct dp_run *run, const struct dp_trace_spec *trace)
{
	*run = (struct dp_run){.trace = trace, .start_ns = dp_now_ns()};
}

/* A run that failed has not said the session's name. */
static void end_lttng(struct dp_run *run)
{
	struct dp_error *err = dp_lttng_end(run);
	if (err)
		dp_trace_log(run->trace, DP_LOG_WARNING, "the LTTng session '%s' may stay: %s [%s]",
		             run->lttng_session ? run->lttng_session : "", err->message, dp_tag_name(err->tag));
	dp_error_destroy(err);
}

void dp_run_fini(struct dp_run *run)
{
	dp_starts_fini(run);
	for (size_t i = 0; i < run->nsessions; i++)
		dp_session_destroy(run->session[i]);
	free(run->session);
	for (size_t i = 0; i < run->nmissing; i++)
		dp_error_destroy(run->missing[i].why);
	free(run->missing);
	end_lttng(run);
	free(run->lttng_session);
	dp_snapshots_fini(run);
	dp_rows_fini(run);
	free(run->decoder);
	dp_thread_names_fini(&run->threads);
	dp_expansion_fini(&run->expanded);
}

/* ---- the processes ------------------------------------------------------------------------------------------------------- */

struct dp_error *dp_run_launch(struct dp_run *run)
{
	struct dp_session *s = NULL;
	DP_TRY(dp_session_launch(run->trace, &s));
	DP_TRY(dp_run_add_session(run, s));
	return dp_starts_follow(run);
}

struct dp_error *dp_run_attach(struct dp_run *run)
{
	DP_TRY(dp_run_open_each(run));
	DP_TRY(dp_starts_begin(run, dp_run_open_one));
	return dp_starts_follow(run);
}

struct dp_error *dp_run_await(struct dp_run *run)
{
	const bool awaits = dp_trace_awaits(run->trace);
	char what[256];
	dp_trace_awaited(run->trace, what, sizeof(what));
	run->armed_ns = awaits ? dp_now_ns() : 0;
	while (awaits && !run->nsessions) {
		if (dp_run_interrupted(run))
			return dp_error(DP_TAG_INTERRUPTED, "a signal came before a %s started", what);
		if (dp_run_must_leave(run))
			return dp_error(DP_TAG_NO_PROCESS, "no %s started while dynprobe waited", what);
		dp_run_rest(run);
		dp_starts_round(run);
	}
	return NULL;
}

/* Replaces patterns by probes, by the functions of the first process that has all of them. */
static struct dp_error *expand_once(struct dp_run *run, struct dp_session *s)
{
	if (run->expanded.trace.probe)
		return NULL;
	struct dp_error *err = dp_expand(run->trace, dp_target_image(s->target), &run->expanded);
	if (!err || err->tag == DP_TAG_INTERRUPTED)
		return err;
	if (dp_starts_lacks(run, err))
		return NULL;
	return s->partial ? dp_starts_expand(run, s, err) : dp_session_advise(s, err);
}

static struct dp_error *expand(struct dp_run *run)
{
	if (!dp_expands(run->trace) || run->trace == &run->expanded.trace)
		return NULL;
	DP_TRY(dp_run_each(run, expand_once));
	if (!run->expanded.trace.probe)
		return dp_starts_drop(run, true);
	run->trace = &run->expanded.trace;
	for (size_t i = 0; i < run->nsessions; i++)
		run->session[i]->trace = run->trace;
	return NULL;
}

static struct dp_error *resolve_one(struct dp_run *run, struct dp_session *s)
{
	(void)run;
	DP_TRY(dp_session_resolve(s));
	DP_TRY(dp_session_scope(s));
	return dp_session_aggs_check(s);
}

static struct dp_error *resolve_once(struct dp_run *run)
{
	DP_TRY(expand(run));
	DP_TRY(dp_run_each(run, resolve_one));
	if (run->nsessions)
		dp_session_aggs_note_keys(run->session[0]);
	dp_starts_log_absent(run);
	return dp_starts_drop(run, false);
}

/* Is this about the process alone, so that the next one of the program may be probed? */
static bool is_of_process(const struct dp_error *err)
{
	return err->tag == DP_TAG_GONE || err->tag == DP_TAG_NO_PROCESS || err->tag == DP_TAG_ZOMBIE ||
	       err->tag == DP_TAG_SECCOMP || err->tag == DP_TAG_TRACED || err->tag == DP_TAG_LOCKED ||
	       err->tag == DP_TAG_PERMISSION;
}

/* Why no process of a run that awaits more can have the probes; NULL: another one may. */
static struct dp_error *why_none(struct dp_run *run)
{
	const size_t last = run->nmissing - 1;
	if (run->trace->all)
		return dp_starts_nowhere(run);
	if (!run->nmissing)
		return dp_error(DP_TAG_NO_PROCESS, "no process is left");
	return is_of_process(run->missing[last].why) ? NULL : dp_take(run->missing[last].why, NULL);
}

struct dp_error *dp_run_resolve(struct dp_run *run)
{
	DP_TRY(resolve_once(run));
	while (dp_trace_awaits(run->trace) && !run->nsessions) {
		DP_TRY(why_none(run));
		DP_TRY(dp_run_await(run));
		DP_TRY(resolve_once(run));
	}
	return NULL;
}

static struct dp_error *dry_run_one(struct dp_run *run, struct dp_session *s)
{
	(void)run;
	return dp_session_dry_run(s);
}

struct dp_error *dp_run_dry_run(struct dp_run *run)
{
	DP_TRY(dp_run_each(run, dry_run_one));
	dp_patterns_judge(run);
	return NULL;
}

/* ---- probes in and out ---------------------------------------------------------------------------------------------------- */

static bool may_be_ending(const struct dp_error *err)
{
	return err->tag == DP_TAG_GONE || err->tag == DP_TAG_NO_PROCESS || err->tag == DP_TAG_ZOMBIE ||
	       err->tag == DP_TAG_NO_THREAD || err->tag == DP_TAG_UNSTOPPABLE || err->tag == DP_TAG_SYS;
}

static bool is_ending(const struct dp_session *s, const struct dp_error *err)
{
	struct pollfd end = {.fd = dp_target_exit_fd(s->target), .events = POLLIN};
	return err->tag != DP_TAG_INTERRUPTED && poll(&end, 1, may_be_ending(err) ? ENDING_MS : 0) > 0;
}

/* Drops the error if the process is ending: its probes end with it. */
static struct dp_error *forgive_end(struct dp_session *s, struct dp_error *err)
{
	return err && is_ending(s, err) ? dp_error_destroy(err) : err;
}

/* A process with probes may end before all are installed: then its events are shown, without an error. */
static struct dp_error *install_one(struct dp_session *s)
{
	struct dp_error *err = dp_session_install(s);
	return dp_session_placed(s) ? forgive_end(s, err) : err;
}

/* Refuses all probes of one of several processes. Its events are parked before `ended` says that it is not there any more. */
static void refuse_all(struct dp_session *s, const struct dp_error *why)
{
	dp_auto_free char *text = dp_error_text(why);
	for (size_t i = 0; i < s->trace->nprobes; i++)
		if (!s->place[i].refused && !s->trace->probe[i].reserved)
			s->place[i].refused = dp_error(why->tag, "%s", text ? text : why->message);
	dp_session_park(s);
	s->ended = true;
}

/* Goes on with the others. Consumes the error, or returns it if the process cannot be rid of the probes that it has already. */
static struct dp_error *give_up_one(struct dp_run *run, struct dp_session *s, struct dp_error *why)
{
	if ((run->nsessions < 2 && !dp_trace_awaits(run->trace)) || why->tag == DP_TAG_INTERRUPTED)
		return why;
	if (dp_session_placed(s)) {
		dp_error_destroy(dp_session_remove(s));
		if (dp_session_warn_of_left(s))
			return why;
	}
	const bool excused = dp_trace_awaits(s->trace) && is_ending(s, why); /* others may have a place for the probes */
	refuse_all(s, why);
	for (size_t i = 0; i < s->trace->nprobes; i++) {
		s->place[i].placed = false;
		s->place[i].absent |= excused;
	}
	return dp_error_destroy(why);
}

/* A process that a search found may have ended before it has a probe: the run goes on as if it had not been found. */
static bool forget_ended(struct dp_run *run, size_t i, struct dp_error **err)
{
	struct dp_session *s = run->session[i];
	const bool found = dp_trace_awaits(run->trace) || dp_trace_found(run->trace, dp_target_pid(s->target));
	if (!*err || run->nsessions < 2 || !found || (*err = forgive_end(s, *err)))
		return false;
	dp_session_park(s);
	dp_session_destroy(s);
	memmove(&run->session[i], &run->session[i + 1], (--run->nsessions - i) * sizeof(*run->session));
	return true;
}

/* Whether the probe to be replaced is the reason that its successor does not fit. */
static bool is_blocked_by_old(const struct dp_run *run)
{
	const struct dp_error *refused = run->supersedes && run->nsessions == 1 ? run->session[0]->place[0].refused : NULL;
	return refused && (refused->tag == DP_TAG_STANDING || refused->tag == DP_TAG_OVERLAP || refused->tag == DP_TAG_NO_SPACE);
}

struct dp_error *dp_run_install(struct dp_run *run, size_t *placed)
{
	*placed = 0;
	run->resolved = true;
	if (dp_run_interrupted(run))
		return dp_error(DP_TAG_INTERRUPTED, "a signal came before the first probe was placed: none was placed");
	for (size_t i = 0; i < run->nsessions && !dp_run_interrupted(run); i++) {
		struct dp_session *s = run->session[i];
		struct dp_error *err = install_one(s);
		if (forget_ended(run, i, &err)) {
			i--;
			continue;
		}
		if (err)
			DP_TRY(give_up_one(run, s, err));
		else
			*placed += dp_session_placed(s) || s->pending;
		dp_snapshots_round(run); /* its hits may wait already, before the next process has its probes */
	}
	dp_starts_hold(run);
	if (!dp_trace_awaits(run->trace) || !run->armed_ns)
		run->armed_ns = dp_now_ns();
	if (is_blocked_by_old(run))
		return dp_error(DP_TAG_STANDING, "the installed probe leaves no room for another jump at its site");
	dp_patterns_judge(run);
	return NULL;
}

struct dp_error *dp_run_release(struct dp_run *run)
{
	for (size_t i = 0; i < run->nsessions; i++)
		DP_TRY(dp_target_release(run->session[i]->target));
	if (run->trace->command)
		run->armed_ns = dp_now_ns(); /* it was stopped until now */
	return NULL;
}

size_t dp_run_placed(const struct dp_run *run)
{
	size_t placed = 0;
	for (size_t i = 0; i < run->nsessions; i++)
		placed += dp_session_placed(run->session[i]);
	return placed;
}

static struct dp_error *remove_all(struct dp_run *run)
{
	struct dp_error *first = NULL;
	for (size_t i = 0; i < run->nsessions; i++) {
		struct dp_error *err = forgive_end(run->session[i], dp_session_remove(run->session[i]));
		if (!first) {
			first = err;
			continue;
		}
		if (err)
			dp_trace_log(run->trace, DP_LOG_WARNING, "%s [%s]", err->message, dp_tag_name(err->tag));
		dp_error_destroy(err);
	}
	return first;
}

struct dp_error *dp_run_remove(struct dp_run *run)
{
	dp_starts_leave(run);
	run->leaving = true;
	run->leave_ns = dp_now_ns();
	dp_snapshots_leave(run);
	for (size_t i = 0; i < run->nsessions; i++)
		dp_session_full_leave(run->session[i]);
	if (run->trace->block_ns)
		dp_run_drain(run, false);
	struct dp_error *err = remove_all(run);
	for (size_t i = 0; i < run->nsessions; i++)
		dp_session_sweep(run->session[i], dp_run_must_leave, run);
	run->clear_ns = dp_now_ns();
	return err;
}

void dp_run_drain_rest(struct dp_run *run)
{
	dp_run_drain(run, true);
	if (!dp_run_has_all(run))
		dp_run_note_losses(run);
}

/* SPDX-License-Identifier: MIT */
#include "cli/run/trace.h"

#include "cli/run/answers/answers.h"
#include "cli/run/lttng_run.h"
#include "cli/run/progress.h"
#include "cli/run/signals.h"
#include "cli/run/snapshots.h"
#include "cli/run/status.h"
#include "cli/session/expand/patterns.h"
#include "cli/session/keep.h"
#include "cli/session/session_scope.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENDING_MS 500

static struct dp_error *add_session(struct dp_run *run, struct dp_session *s)
{
	struct dp_session **grown = realloc(run->session, (run->nsessions + 1) * sizeof(*grown));
	if (!grown) {
		dp_session_destroy(s);
		return dp_error(DP_TAG_NOMEM, "out of memory for a target");
	}
	run->session = grown;
	run->session[run->nsessions++] = s;
	return NULL;
}

static struct dp_error *watch_signals(const struct dp_run *run)
{
	const bool held = run->options->command;
	return dp_signals_watch(run->signal_fd, held ? dp_target_pid(run->session[0]->target) : 0);
}

static struct dp_error *open_targets(struct dp_run *run)
{
	struct dp_session *s = NULL;
	if (run->options->command) {
		/* Before our signals are blocked: the command inherits the mask. */
		DP_TRY(dp_session_launch(run->options, &s));
		DP_TRY(add_session(run, s));
		return dp_signals_open(&run->signal_fd);
	}
	DP_TRY(dp_signals_open(&run->signal_fd));
	for (size_t i = 0; i < run->options->npids; i++) {
		DP_TRY(dp_session_open(run->options, run->options->pid[i], &s));
		DP_TRY(add_session(run, s));
	}
	return NULL;
}

/* Patterns become probes by what the first target has. */
static struct dp_error *expand(struct dp_run *run)
{
	if (!dp_expands(run->options))
		return NULL;
	DP_TRY(dp_expand(run->options, dp_target_image(run->session[0]->target), &run->expanded));
	run->options = &run->expanded.options;
	for (size_t i = 0; i < run->nsessions; i++)
		run->session[i]->options = run->options;
	return NULL;
}

static struct dp_error *resolve_all(struct dp_run *run)
{
	DP_TRY(expand(run));
	for (size_t i = 0; i < run->nsessions; i++)
		DP_TRY(dp_session_resolve(run->session[i]));
	for (size_t i = 0; i < run->nsessions; i++)
		DP_TRY(dp_session_scope(run->session[i]));
	return NULL;
}

static bool may_be_ending(const struct dp_error *err)
{
	return err->tag == DP_TAG_GONE || err->tag == DP_TAG_NO_PROCESS || err->tag == DP_TAG_ZOMBIE ||
	       err->tag == DP_TAG_NO_THREAD || err->tag == DP_TAG_UNSTOPPABLE;
}

/* A process that is on its way out cannot be worked in any more, and takes its probes along. */
static struct dp_error *forgive_end(struct dp_session *s, struct dp_error *err)
{
	struct pollfd end = {.fd = dp_target_exit_fd(s->target), .events = POLLIN};
	if (!err || err->tag == DP_TAG_INTERRUPTED)
		return err;
	return poll(&end, 1, may_be_ending(err) ? ENDING_MS : 0) > 0 ? dp_error_destroy(err) : err;
}

/* With probes in it, a process may end before all is done: what they recorded is shown. */
static struct dp_error *install_one(struct dp_session *s)
{
	struct dp_error *err = dp_session_install(s);
	return dp_session_placed(s) ? forgive_end(s, err) : err;
}

/* Is the probe that is to be superseded in the way of the one that takes its place? */
static bool is_blocked_by_old(const struct dp_run *run)
{
	const struct dp_error *refused = run->supersedes && run->nsessions == 1 ? run->session[0]->place[0].refused : NULL;
	return refused && (refused->tag == DP_TAG_STANDING || refused->tag == DP_TAG_OVERLAP || refused->tag == DP_TAG_NO_SPACE);
}

/* A signal between two targets ends it, without an error. */
static struct dp_error *install_all(struct dp_run *run)
{
	size_t placed = 0;
	for (size_t i = 0; i < run->nsessions && !dp_run_interrupted(run); i++) {
		DP_TRY(install_one(run->session[i]));
		placed += dp_session_placed(run->session[i]) || run->session[i]->pending;
		dp_snapshots_round(run); /* its hits wait already, while the others are yet to be armed */
	}
	run->armed_ns = dp_now_ns();
	dp_signals_settled();
	dp_progress_on(false);
	if (is_blocked_by_old(run))
		return dp_error(DP_TAG_STANDING, "the probe that stands leaves no room for another jump at its place");
	dp_patterns_judge(run);
	dp_report_refusals(run);
	if (dp_run_interrupted(run))
		return NULL;
	if (run->options->verbose)
		dp_report_plan(run, stderr);
	if (!placed)
		return dp_error(DP_TAG_USAGE, "none of the probes could be placed; the target runs on %s",
		                run->use_lttng ? "as before, with the LTTng sink loaded in it, idle" : "untouched");
	return NULL;
}

static void say_where(const struct dp_run *run)
{
	if (run->options->attach)
		fprintf(stderr, "dynprobe: events stay in the target (%s); dynprobe record takes them\n", run->why_ring);
	else if (run->options->asked.what)
		fprintf(stderr, "dynprobe: counting; Ctrl-C ends\n");
	else if (run->out.record_dir)
		fprintf(stderr, "dynprobe: recording into %s with the embedded recorder (%s); Ctrl-C ends\n", run->out.record_dir,
		        run->why_ring);
	else
		fprintf(stderr, "dynprobe: showing events; recording is off (%s); Ctrl-C ends\n", run->why_ring);
}

static struct dp_error *open_outputs(struct dp_run *run)
{
	if (run->use_lttng || run->options->attach) {
		dp_outputs_none(run->options, &run->out);
		if (!run->use_lttng) {
			say_where(run);
			return NULL;
		}
		dp_signals_unwatch(); /* a session may be created */
		return dp_lttng_begin(run);
	}
	const struct dp_outputs_reader reader = {dp_run_must_leave, run};
	DP_TRY(dp_outputs_open(run->options, dp_target_comm(run->session[0]->target), &reader, &run->out));
	say_where(run);
	return NULL;
}

static struct dp_error *remove_all(struct dp_run *run)
{
	struct dp_error *first = NULL;
	for (size_t i = 0; i < run->nsessions; i++) {
		struct dp_error *err = forgive_end(run->session[i], dp_session_remove(run->session[i]));
		if (first)
			dp_error_destroy(err);
		else
			first = err;
	}
	return first;
}

static void say_dropped(const struct dp_run *run, size_t bytes)
{
	uint64_t hits = 0;
	for (size_t i = 0; i < run->nsessions; i++)
		for (size_t k = 0; k < run->options->nprobes; k++)
			hits += run->session[i]->place[k].unshown;
	if (hits || bytes)
		fprintf(stderr,
		        "dynprobe: a second signal came before all events were shown: %" PRIu64
		        " hits and %zu bytes of text were dropped\n",
		        hits, bytes);
}

/* What takes a while is said: whoever asked for the end sees that it was heard. */
static void say_leaving(const struct dp_run *run)
{
	size_t placed = 0;
	for (size_t i = 0; i < run->nsessions; i++)
		placed += dp_session_placed(run->session[i]);
	if (placed > DP_MANY_PLACES && !run->options->quiet)
		fprintf(stderr, "dynprobe: taking out %zu probes\n", placed);
}

/* From here on a signal only means that nobody waits for the events any more. */
static struct dp_error *leave(struct dp_run *run)
{
	run->leaving = true;
	run->leave_ns = dp_now_ns();
	dp_progress_on(!run->options->quiet);
	say_leaving(run);
	dp_snapshots_leave(run);
	struct dp_error *err = remove_all(run);
	run->clear_ns = dp_now_ns();
	dp_progress_on(false);
	dp_run_drain(run, true);
	if (!dp_run_has_all(run))
		dp_run_note_losses(run);
	say_dropped(run, dp_outputs_settle(&run->out));
	return err;
}

static struct dp_error *finish(struct dp_run *run)
{
	struct dp_error *err = leave(run);
	struct dp_error *flushed = dp_outputs_flush(&run->out, dp_run_lost(run));
	struct dp_error *ended = dp_outputs_end(&run->out);
	if (!ended)
		ended = dp_lttng_end(run);
	dp_answers_final(run);
	dp_report_summary(run);
	dp_snapshots_report(run);
	if (!err)
		err = dp_take(flushed, NULL);
	if (!err)
		err = dp_take(ended, NULL);
	dp_error_destroy(flushed);
	dp_error_destroy(ended);
	return err;
}

static struct dp_error *run_live(struct dp_run *run)
{
	DP_TRY(open_outputs(run));
	DP_TRY(dp_snapshots_begin(run));
	DP_TRY(install_all(run));
	/* A command that we start is still held: its first hits are not to be missed. */
	if (run->use_lttng && !run->ended_by)
		dp_lttng_settle(run);
	DP_TRY(dp_target_release(run->session[0]->target));
	if (run->options->command)
		run->armed_ns = dp_now_ns(); /* it was held until now */
	struct dp_error *err = dp_run_loop(run);
	struct dp_error *end = finish(run);
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

/* The probes stay: nothing is shown here, and nothing waited for. */
static struct dp_error *run_attach(struct dp_run *run)
{
	DP_TRY(open_outputs(run));
	DP_TRY(dp_keep_announce(run));
	DP_TRY(install_all(run));
	if (run->ended_by)
		return dp_error(DP_TAG_INTERRUPTED, "a signal came before all probes stood: none was left");
	for (size_t i = 0; i < run->nsessions; i++)
		DP_TRY(dp_keep(run, run->session[i]));
	if (run->use_lttng)
		dp_lttng_settle(run);
	DP_TRY(dp_target_release(run->session[0]->target));
	return dp_lttng_end(run);
}

static struct dp_error *run_dry(struct dp_run *run)
{
	for (size_t i = 0; i < run->nsessions; i++)
		DP_TRY(dp_session_dry_run(run->session[i]));
	dp_patterns_judge(run);
	dp_report_plan(run, stdout);
	return dp_report_flushed();
}

static struct dp_error *run_all(struct dp_run *run)
{
	DP_TRY(open_targets(run));
	DP_TRY(watch_signals(run));
	dp_progress_on(!run->options->quiet);
	DP_TRY(resolve_all(run));
	if (run->options->dry_run)
		return run_dry(run);
	DP_TRY(dp_lttng_choose(run));
	return run->options->attach ? run_attach(run) : run_live(run);
}

static void run_fini(struct dp_run *run)
{
	for (size_t i = 0; i < run->nsessions; i++)
		dp_session_destroy(run->session[i]);
	free(run->session);
	dp_error_destroy(dp_lttng_end(run));
	free(run->lttng_session);
	dp_error_destroy(dp_outputs_end(&run->out));
	dp_outputs_fini(&run->out);
	if (run->signal_fd >= 0)
		close(run->signal_fd);
	dp_answers_fini(run);
	dp_snapshots_fini(run);
	dp_expansion_fini(&run->expanded);
}

static int trace(const struct dp_options *options, const char *supersedes, bool *blocked)
{
	struct dp_run run = {.options = options, .signal_fd = -1, .start_ns = dp_now_ns(), .supersedes = supersedes};
	struct dp_error *err = run_all(&run);
	dp_signals_unwatch();
	dp_progress_on(false);
	if (err && err->tag == DP_TAG_INTERRUPTED)
		dp_run_interrupted(&run); /* says by which signal */
	int status = dp_status_of(&run, err);
	if (blocked && err && err->tag == DP_TAG_STANDING)
		*blocked = true;
	else
		dp_error_print(err, stderr);
	run.failed = err != NULL;
	if (!err && options->command && !options->dry_run)
		status = dp_status_wait(&run, status);
	dp_error_destroy(err);
	run_fini(&run);
	return status;
}

int dp_trace(const struct dp_options *options)
{
	return trace(options, NULL, NULL);
}

int dp_trace_superseding(const struct dp_options *options, const char *name, bool *blocked)
{
	*blocked = false;
	return trace(options, name, blocked);
}

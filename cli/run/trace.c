/* SPDX-License-Identifier: MIT */
#include "cli/run/trace.h"

#include "base/cleanup.h"
#include "cli/run/aggregations.h"
#include "cli/run/progress.h"
#include "cli/run/signals.h"
#include "cli/run/status.h"
#include "injector/tracee/proc/proc.h"
#include "session/run/lttng_run.h"
#include "session/run/run_keep.h"
#include "session/run/snapshots.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static struct dp_error *open_signals(struct dp_trace *t)
{
	DP_TRY(dp_signals_open(&t->signal_fd));
	t->calls.wake_fd = t->signal_fd;
	return NULL;
}

static struct dp_error *attach(struct dp_trace *t)
{
	DP_TRY(dp_run_attach(&t->run));
	if (t->run.nsessions)
		return NULL;
	char what[256];
	dp_trace_awaited(&t->spec, what, sizeof(what));
	if (t->spec.dry_run)
		return dp_error(DP_TAG_NO_PROCESS, "no %s: --dry-run does not wait for one", what);
	if (!t->options->quiet)
		fprintf(stderr, "dynprobe: waiting for a %s; Ctrl-C ends\n", what);
	return dp_run_await(&t->run);
}

static struct dp_error *open_targets(struct dp_trace *t)
{
	const bool command = t->options->trace.command;
	if (command) /* before our signals are blocked: the command inherits the mask */
		DP_TRY(dp_run_launch(&t->run));
	DP_TRY(open_signals(t));
	if (!command)
		DP_TRY(attach(t));
	return dp_signals_watch(t->signal_fd, command ? dp_target_pid(t->run.session[0]->target) : 0);
}

/* Why the first one was refused, which its line has said with its remedy. */
static enum dp_tag first_refusal(const struct dp_trace *t)
{
	for (size_t k = 0; k < t->run.nsessions; k++)
		for (size_t i = 0; i < t->run.trace->nprobes; i++)
			if (t->run.session[k]->place[i].refused)
				return t->run.session[k]->place[i].refused->tag;
	return DP_TAG_NO_SPACE;
}

/* What was mapped for the probes is removed before it is said what is left. (A command ends before it has begun.) */
static bool leaves_some(struct dp_trace *t)
{
	bool some = false;
	if (t->spec.command)
		return false;
	dp_error_destroy(dp_run_remove(&t->run)); /* each session knows why it failed */
	for (size_t k = 0; k < t->run.nsessions; k++) {
		some |= dp_session_warn_of_left(t->run.session[k]);
		dp_session_warn_of_children(t->run.session[k]);
	}
	return some;
}

static struct dp_error *none_placed(struct dp_trace *t)
{
	const char *as = t->run.use_lttng ? "unchanged, but has the LTTng sink loaded, idle" : "unchanged";
	const bool some = leaves_some(t);
	return dp_error_advise(
	        dp_error(first_refusal(t), "none of the probes could be placed; %s%s",
	                 some ? "what was mapped for them does nothing, but cannot be removed yet" : "the target is ",
	                 some ? "" : as),
	        "");
}

static struct dp_error *install(struct dp_trace *t)
{
	size_t placed;
	DP_TRY(dp_run_install(&t->run, &placed));
	dp_signals_settled();
	dp_progress_on(false);
	dp_report_refusals(t);
	if (dp_run_interrupted(&t->run))
		return NULL;
	if (t->options->verbose)
		dp_report_plan(t, stderr);
	if (!placed && !t->run.starts)
		return none_placed(t);
	return NULL;
}

static const char *what_is_followed(const struct dp_trace *t)
{
	if (t->spec.programs.n)
		return "";
	if (!t->run.starts)
		return "; programs that they execute are not probed";
	return t->spec.follow_exec.n ? ", and of the programs that they execute those of --follow-exec"
	                             : ", and the programs that they execute";
}

static void say_where(const struct dp_trace *t)
{
	char why[sizeof(t->run.why_ring) + sizeof(" ()")] = "";
	if (*t->run.why_ring)
		snprintf(why, sizeof(why), " (%s)", t->run.why_ring);
	dp_progress_clear();
	if (t->spec.attach)
		fprintf(stderr, "dynprobe: events stay in the target%s; dynprobe record prints them\n", why);
	else if (t->spec.asked.tree)
		fprintf(stderr, "dynprobe: measuring calls; Ctrl-C ends\n");
	else if (t->spec.asked.what)
		fprintf(stderr, "dynprobe: counting; Ctrl-C ends\n");
	else if (t->spec.overwrite)
		fprintf(stderr, "dynprobe: keeping the newest events of each thread%s%s; Ctrl-C ends and takes them\n",
		        t->out.record_dir ? ", for " : "", t->out.record_dir ? t->out.record_dir : "");
	else if (t->out.record_dir)
		fprintf(stderr, "dynprobe: recording into %s with the embedded recorder%s; Ctrl-C ends\n", t->out.record_dir, why);
	else
		fprintf(stderr, "dynprobe: showing events; recording is off%s; Ctrl-C ends\n", why);
}

struct unprobed { /* children that --follow does not mean */
	const struct dp_trace *t;
	pid_t parent;
	size_t n;
};

static void count_unprobed(pid_t child, void *data)
{
	struct unprobed *u = data;
	for (size_t i = 0; i < u->t->run.nsessions; i++)
		if (dp_target_pid(u->t->run.session[i]->target) == child)
			return;
	u->n++;
}

/* The workers of a service that runs: --follow is about those to come. */
static void say_unprobed(const struct dp_trace *t)
{
	struct unprobed u = {.t = t};
	const char *comm = "";
	for (size_t i = 0; i < t->run.nsessions; i++) {
		const size_t before = u.n;
		const pid_t pid = dp_target_pid(t->run.session[i]->target);
		dp_proc_children(pid, count_unprobed, &u);
		if (u.n > before && !before) {
			u.parent = pid;
			comm = dp_target_comm(t->run.session[i]->target);
		}
	}
	if (u.n)
		fprintf(stderr,
		        "dynprobe: %zu child%s of %d (%s) that began before %s not probed: --pid %s means all processes of that name\n",
		        u.n, u.n == 1 ? "" : "ren", u.parent, comm, u.n == 1 ? "is" : "are", comm);
}

static void say_which(const struct dp_trace *t)
{
	if (t->spec.programs.n)
		fprintf(stderr, "dynprobe: processes of %s%s are probed when they start\n", t->spec.programs.item[0],
		        t->spec.programs.n > 1 ? " and the others" : "");
	if (t->spec.all)
		fprintf(stderr, "dynprobe: %zu process%s now, and those to come\n", t->run.nsessions,
		        t->run.nsessions == 1 ? "" : "es");
	else if (t->spec.follow)
		fprintf(stderr, "dynprobe: following fork children%s\n", what_is_followed(t));
	if (t->spec.follow && t->spec.npids)
		say_unprobed(t);
}

static struct dp_error *open_outputs(struct dp_trace *t)
{
	if (t->run.use_lttng || t->spec.attach) {
		dp_outputs_none(t->options, &t->out);
		if (!t->run.use_lttng) {
			say_where(t);
			return NULL;
		}
		dp_signals_unwatch(); /* a session may be created */
		DP_TRY(dp_lttng_begin(&t->run));
		say_which(t);
		return NULL;
	}
	DP_TRY(dp_aggs_place(t->options));
	const struct dp_outputs_reader reader = {dp_run_must_leave, &t->run, t->signal_fd};
	DP_TRY(dp_outputs_open(t->options, t->run.trace, dp_target_comm(t->run.session[0]->target), &reader, &t->out));
	DP_TRY(dp_calls_open(t->options, t->run.trace, t->out.file, &t->out.drawn, &t->tree));
	dp_trace_calls_batches(t);
	say_where(t);
	say_which(t);
	return NULL;
}

static void say_dropped(const struct dp_trace *t, size_t bytes)
{
	uint64_t hits = 0;
	for (size_t i = 0; i < t->run.nsessions; i++)
		for (size_t k = 0; k < t->run.trace->nprobes; k++)
			hits += t->run.session[i]->place[k].unshown;
	if (hits || bytes)
		fprintf(stderr,
		        "dynprobe: a second signal came before all events were shown: %" PRIu64
		        " hits and %zu bytes of text were dropped\n",
		        hits, bytes);
}

/* Announces a long removal, so that the user sees that Ctrl-C was noticed. */
static struct dp_error *leave(struct dp_trace *t)
{
	const size_t placed = dp_run_placed(&t->run);
	dp_progress_on(!t->options->quiet);
	if (placed > DP_MANY_PLACES && !t->options->quiet)
		fprintf(stderr, "dynprobe: removing %zu probes\n", placed);
	struct dp_error *err = dp_run_remove(&t->run);
	dp_progress_on(false);
	dp_run_drain_rest(&t->run);
	say_dropped(t, dp_outputs_settle(&t->out));
	return err;
}

double dp_trace_seconds(const struct dp_trace *t)
{
	const uint64_t now = t->run.clear_ns ? t->run.clear_ns : dp_now_ns();
	return t->run.armed_ns ? (double)(now - t->run.armed_ns) / 1e9 : 0;
}

/* --calls */
static struct dp_error *draw_calls(struct dp_trace *t)
{
	struct dp_buf what = {0}, program = {0};
	dp_auto_free char *text = NULL;
	size_t n = 0;
	FILE *lines = t->tree && t->options->flame ? open_memstream(&text, &n) : NULL;
	if (!lines)
		return t->tree && t->options->flame ? dp_error_nomem() : NULL;
	dp_calls_folded(t->tree, lines);
	dp_calls_title(t->tree, &what);
	dp_trace_program(t, &program);
	const struct dp_flame_about about = {.program = dp_buf_str(&program),
	                                     .what = dp_buf_str(&what),
	                                     .unit = "ns",
	                                     .empty = "no call returned while it was probed"};
	struct dp_error *err = fclose(lines) ? dp_error_nomem() : dp_flame_folded(t->options, text, n, &about);
	dp_buf_fini(&what);
	dp_buf_fini(&program);
	return err;
}

static struct dp_error *finish(struct dp_trace *t)
{
	struct dp_error *err = leave(t);
	struct dp_error *flushed = dp_outputs_flush(&t->out, dp_run_lost(&t->run));
	struct dp_error *ended = dp_outputs_end(&t->out);
	if (!ended)
		ended = dp_lttng_end(&t->run);
	struct dp_error *drawn = dp_aggs_final(t);
	dp_calls_lost(t->tree, dp_run_lost(&t->run));
	dp_calls_final(t->tree, dp_trace_seconds(t));
	if (!drawn)
		drawn = draw_calls(t);
	dp_report_summary(t);
	dp_report_snapshots(t);
	struct dp_error *others[] = {flushed, ended, drawn, dp_outputs_last(&t->out)};
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (!err)
			err = dp_take(others[i], NULL);
		dp_error_destroy(others[i]);
	}
	return err;
}

static bool is_cut(const struct dp_error *err)
{
	return dp_outputs_disk_full(err) || dp_outputs_unread(err);
}

/*
 * What was recorded until the disk was full is there, and a reader that went had enough: the run has ended, as by Ctrl-C. The
 * first error of a run counts.
 */
static struct dp_error *unless_cut(struct dp_trace *t, struct dp_error *err, struct dp_error *end)
{
	struct dp_error *first = err && (!is_cut(err) || !end || is_cut(end)) ? dp_take(err, NULL) : dp_take(end, NULL);
	dp_error_destroy(err);
	dp_error_destroy(end);
	if (!is_cut(first))
		return first;
	t->cut = dp_outputs_disk_full(first);
	if (t->cut)
		dp_error_print(first, stderr);
	return dp_error_destroy(first);
}

static struct dp_error *run_live(struct dp_trace *t)
{
	DP_TRY(open_outputs(t));
	DP_TRY(dp_snapshots_begin(&t->run));
	DP_TRY(install(t));
	/* A command that we start is still stopped: its first hits must not be missed. */
	if (t->run.use_lttng && !t->run.ended_by)
		dp_lttng_settle(&t->run);
	DP_TRY(dp_run_release(&t->run));
	struct dp_error *err = dp_run_loop(&t->run);
	if (dp_outputs_disk_full(err))
		t->run.ended_by = "disk full";
	else if (dp_outputs_unread(err))
		t->run.ended_by = "closed output";
	struct dp_error *end = finish(t);
	return unless_cut(t, err, end);
}

/* The probes stay; shows nothing, and waits for nothing. */
static struct dp_error *run_attach(struct dp_trace *t)
{
	DP_TRY(open_outputs(t));
	DP_TRY(dp_run_keep_announce(&t->run));
	DP_TRY(install(t));
	if (t->run.ended_by)
		return dp_error(DP_TAG_INTERRUPTED, "a signal came before all probes were placed: none was left");
	DP_TRY(dp_run_keep(&t->run));
	if (t->run.use_lttng)
		dp_lttng_settle(&t->run);
	DP_TRY(dp_run_release(&t->run));
	return dp_lttng_end(&t->run);
}

static struct dp_error *run_dry(struct dp_trace *t)
{
	DP_TRY(dp_run_dry_run(&t->run));
	dp_report_plan(t, stdout);
	return dp_report_flushed();
}

static struct dp_error *run_all(struct dp_trace *t)
{
	DP_TRY(open_targets(t));
	dp_progress_on(!t->options->quiet);
	DP_TRY(dp_run_resolve(&t->run));
	if (t->spec.dry_run)
		return run_dry(t);
	DP_TRY(dp_lttng_choose(&t->run));
	return t->spec.attach ? run_attach(t) : run_live(t);
}

static void trace_fini(struct dp_trace *t)
{
	/* Before the run, which owns the event classes. */
	if (t->run.failed && !t->run.recorded)
		dp_outputs_discard(&t->out);
	else
		dp_error_destroy(dp_outputs_end(&t->out));
	dp_outputs_fini(&t->out);
	dp_calls_close(t->tree);
	dp_compared_kept_fini(&t->earlier);
	dp_run_fini(&t->run);
	if (t->signal_fd >= 0)
		close(t->signal_fd);
}

static int trace(const struct dp_options *options, const char *supersedes, bool *blocked)
{
	struct dp_trace t = {.options = options, .signal_fd = -1};
	dp_trace_calls_init(&t);
	dp_aggs_begin(&t);
	dp_run_init(&t.run, &t.spec);
	t.run.supersedes = supersedes;
	struct dp_error *err = run_all(&t);
	dp_signals_unwatch();
	dp_progress_on(false);
	if (err && err->tag == DP_TAG_INTERRUPTED)
		dp_run_interrupted(&t.run); /* which signal was it? */
	int status = dp_status_of(&t, err);
	if (blocked && err && err->tag == DP_TAG_STANDING)
		*blocked = true;
	else
		dp_error_print(err, stderr);
	t.run.failed = err != NULL;
	if (!err && t.spec.command && !t.spec.dry_run)
		status = dp_status_wait(&t, status);
	dp_error_destroy(err);
	trace_fini(&t);
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

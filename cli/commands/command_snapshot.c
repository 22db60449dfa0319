/* SPDX-License-Identifier: MIT */
/* snapshot: saves a process at one moment. Standard output gets the modules' output and then the file's path; everything else
 * goes to standard error. */
#include "cli/commands/command.h"
#include "cli/run/module_log.h"
#include "session/code/code_view.h"

#include "pmodules/pmodules.h"

#include "base/cleanup.h"
#include "base/sanitize.h"
#include "probes/debug/debug_cache.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void put_held(const struct dp_snapshot *s)
{
	fprintf(stderr, ", stopped for %.2f ms", (double)s->pause_ns / 1e6);
	if (s->held_ns > s->pause_ns)
		fprintf(stderr, " (%.2f ms in all)", (double)s->held_ns / 1e6);
}

/* Text that the program may have chosen, on one line, so that it cannot look like a line of ours. */
static const char *tame(char *ret, size_t size, const char *text)
{
	snprintf(ret, size, "%s", text);
	for (char *p = dp_sanitize(ret); (p = strpbrk(p, "\n\t"));)
		*p = '?';
	return ret;
}

static void report(const struct dp_options *o, const struct dp_snapshot *s)
{
	char name[64], line[1024];
	if (o->quiet)
		return;
	fprintf(stderr, "dynprobe: %zu thread%s of %d (%s)", s->nthreads, s->nthreads == 1 ? "" : "s", s->pid,
	        tame(name, sizeof(name), s->application));
	if (strcmp(s->mode, "core"))
		put_held(s);
	fprintf(stderr, "; %.0f ms in all, mode %s\n", (double)s->total_ns / 1e6, s->mode);
	if (o->verbose)
		fprintf(stderr,
		        "dynprobe: stopping all threads %.2f ms, registers and stacks %.2f ms; prefetch before that %.1f ms\n",
		        (double)s->stop_ns / 1e6, (double)s->read_ns / 1e6, (double)s->rehearsal_ns / 1e6);
	for (const struct dp_snap_note *n = s->notes; n; n = n->next)
		if (!*n->module && n->kind != DP_NOTE_JSON)
			fprintf(stderr, "dynprobe: %s\n", tame(line, sizeof(line), n->text));
	for (const struct dp_snap_word *w = s->truncations; w; w = w->next)
		fprintf(stderr, "dynprobe: left out: %s\n", tame(line, sizeof(line), w->text));
}

/* FILE; with several snapshots also FILE.2, FILE.3, ... */
static void name_of(const struct dp_options *o, const struct dp_snapshot *s, uint64_t nth, char *ret, size_t size)
{
	if (!o->output)
		dp_snap_capture_name(s, ret, size);
	else
		snprintf(ret, size, "%s", o->output);
	const size_t n = strlen(ret);
	if (nth > 1)
		snprintf(ret + n, size - n, ".%llu", (unsigned long long)nth);
}

static struct dp_error *take_one(const struct dp_options *o, struct dp_snap_capture *take, uint64_t nth, struct dp_module_log *log)
{
	const struct dp_snapshot_args *a = &o->snapshot;
	struct dp_snapshot *s = NULL;
	char path[4096];
	struct dp_error *err =
	        a->core ? dp_snap_capture_core(take, a->core, o->nnames ? o->name[0] : NULL, &s) : dp_snap_capture_process(take, o->trace.pid[0], &s);
	if (err)
		return err;
	name_of(o, s, nth, path, sizeof(path));
	err = o->output ? dp_snapshot_write(s, path) : dp_snapshot_write_beside(s, path);
	if (!err) {
		report(o, s);
		err = dp_module_log_put(log);
	}
	if (!err) {
		if (puts(path) < 0 || fflush(stdout))
			err = dp_error_sys(DP_TAG_OUTPUT, "writing the file's name");
	}
	dp_snapshot_destroy(s);
	return err;
}

static void rest(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	nanosleep(&ts, NULL);
}

/*
 * A forked copy that outlives dynprobe would stay in the program's list of children. So SIGINT, SIGTERM and SIGHUP wait until it
 * is reaped. (SIGKILL cannot wait.)
 */
static struct dp_error *take_safely(const struct dp_options *o, struct dp_snap_capture *take, uint64_t nth, struct dp_module_log *log)
{
	sigset_t ends, old;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	if (o->snapshot.take.still.mode == DP_STOPPED_FORK)
		sigprocmask(SIG_BLOCK, &ends, &old);
	struct dp_error *err = take_one(o, take, nth, log);
	if (o->snapshot.take.still.mode == DP_STOPPED_FORK)
		sigprocmask(SIG_SETMASK, &old, NULL);
	return err;
}

static struct dp_error *take_all(const struct dp_options *o, struct dp_snap_capture *take, struct dp_module_log *log)
{
	const uint64_t n = o->snapshot.iterations ? o->snapshot.iterations : 1;
	for (uint64_t nth = 1; nth <= n; nth++) {
		if (nth > 1 && o->snapshot.interval_ns)
			rest(o->snapshot.interval_ns);
		DP_TRY(take_safely(o, take, nth, log));
	}
	return NULL;
}

int dp_command_snapshot(const struct dp_options *options)
{
	struct dp_snap_capture *take = NULL;
	struct dp_snap_capture_options wanted = options->snapshot.take;
	struct dp_module_log log;
	dp_module_log_init(&log, options);
	wanted.log = dp_module_log_line;
	wanted.data = &log;
	wanted.still.allow_seccomp = options->trace.allow_seccomp;
	wanted.version = "dynprobe " DP_VERSION;
	dp_auto_free char *cache = dp_cache_dir();
	dp_debug_cache_dir(cache);
	struct dp_error *err = dp_snapshot_check_place(options->output);
	if (!err)
		err = dp_snap_capture_create(&wanted, &take);
	if (!err)
		err = take_all(options, take, &log);
	dp_snap_capture_destroy(take);
	const bool whole = !log.errors;
	dp_module_log_fini(&log);
	if (!err)
		return whole ? 0 : DP_EXIT_PARTIAL;
	dp_error_print(err, stderr);
	dp_error_destroy(err);
	return DP_EXIT_FAILURE;
}

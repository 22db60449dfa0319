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
		if (n->kind != DP_NOTE_JSON &&
		    (!*n->module || n->kind != DP_NOTE_COMMENT)) /* of modules: what they found wrong */
			fprintf(stderr, "dynprobe: %s\n", tame(line, sizeof(line), n->text));
	for (const struct dp_snap_word *w = s->truncations; w; w = w->next)
		fprintf(stderr, "dynprobe: left out: %s\n", tame(line, sizeof(line), w->text));
}

struct shooting {
	const struct dp_options *o;
	struct dp_snap_capture *take;
	struct dp_module_log log;
	pid_t *pid; /* those that have not ended; of a core one, 0 */
	size_t n;
	bool several; /* processes were named: one's trouble is not the others' */
	size_t written, failed;
	uint64_t nth; /* iteration, from 1 */
};

/* FILE; of several processes FILE.PID; with several snapshots of each also FILE.2, FILE.3, ... */
static void name_of(const struct shooting *j, const struct dp_snapshot *s, char *ret, size_t size)
{
	if (!j->o->output)
		dp_snap_capture_name(s, ret, size);
	else
		snprintf(ret, size, "%s", j->o->output);
	if (j->o->output && j->several)
		snprintf(ret + strlen(ret), size - strlen(ret), ".%d", s->pid);
	if (j->nth > 1)
		snprintf(ret + strlen(ret), size - strlen(ret), ".%llu", (unsigned long long)j->nth);
}

static struct dp_error *write_one(struct shooting *j, struct dp_snapshot *s)
{
	char path[4096];
	name_of(j, s, path, sizeof(path));
	DP_TRY(j->o->output ? dp_snapshot_write(s, path) : dp_snapshot_write_beside(s, path));
	report(j->o, s);
	DP_TRY(dp_module_log_put(&j->log));
	return puts(path) < 0 || fflush(stdout) ? dp_error_sys(DP_TAG_OUTPUT, "writing the file's name") : NULL;
}

static struct dp_error *take_one(struct shooting *j, pid_t pid)
{
	const struct dp_options *o = j->o;
	struct dp_snapshot *s = NULL;
	struct dp_error *err = o->snapshot.core
	                               ? dp_snap_capture_core(j->take, o->snapshot.core, o->nnames ? o->name[0] : NULL, &s)
	                               : dp_snap_capture_process(j->take, pid, &s);
	if (!err)
		err = write_one(j, s);
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
static struct dp_error *take_safely(struct shooting *j, pid_t pid)
{
	sigset_t ends, old;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	if (j->o->snapshot.take.still.mode == DP_STOPPED_FORK)
		sigprocmask(SIG_BLOCK, &ends, &old);
	struct dp_error *err = take_one(j, pid);
	if (j->o->snapshot.take.still.mode == DP_STOPPED_FORK)
		sigprocmask(SIG_SETMASK, &old, NULL);
	return err;
}

static bool has_ended(const struct dp_error *err)
{
	return err->tag == DP_TAG_NO_PROCESS || err->tag == DP_TAG_ZOMBIE || err->tag == DP_TAG_GONE;
}

/* Consumes the error of one of several processes, and returns whether to try it again in the next iteration. */
static bool goes_on(struct shooting *j, pid_t pid, struct dp_error *err)
{
	j->written += !err;
	if (!err)
		return true;
	const bool again = !has_ended(err);
	if (dp_trace_found_ended(&j->o->trace, pid, err)) {
		dp_error_destroy(err);
		return false;
	}
	j->failed++;
	err = dp_error_wrap(err, "no snapshot of %d", pid);
	dp_error_print(err, stderr);
	dp_error_destroy(err);
	return again;
}

/* One snapshot of each process, one after the other. */
static struct dp_error *take_round(struct shooting *j)
{
	size_t kept = 0;
	for (size_t i = 0; i < j->n; i++) {
		struct dp_error *err = take_safely(j, j->pid[i]);
		if (err && !j->several)
			return err;
		if (goes_on(j, j->pid[i], err))
			j->pid[kept++] = j->pid[i];
	}
	j->n = kept;
	return NULL;
}

static struct dp_error *take_all(struct shooting *j)
{
	const uint64_t n = j->o->snapshot.iterations ? j->o->snapshot.iterations : 1;
	for (j->nth = 1; j->nth <= n && j->n; j->nth++) {
		if (j->nth > 1 && j->o->snapshot.interval_ns)
			rest(j->o->snapshot.interval_ns);
		DP_TRY(take_round(j));
	}
	return NULL;
}

static struct dp_error *list_processes(struct shooting *j)
{
	const struct dp_trace_spec *trace = &j->o->trace;
	j->n = trace->npids ? trace->npids : 1;
	j->several = trace->npids > 1;
	j->pid = calloc(j->n, sizeof(*j->pid));
	for (size_t i = 0; j->pid && i < trace->npids; i++)
		j->pid[i] = trace->pid[i];
	return j->pid ? NULL : dp_error_nomem();
}

static struct dp_error *take(struct shooting *j)
{
	struct dp_snap_capture_options wanted = j->o->snapshot.take;
	wanted.of_core = j->o->snapshot.core;
	wanted.log = dp_module_log_line;
	wanted.data = &j->log;
	wanted.still.allow_seccomp = j->o->trace.allow_seccomp;
	wanted.version = "dynprobe " DP_VERSION;
	dp_auto_free char *cache = dp_cache_dir();
	dp_debug_cache_dir(cache);
	DP_TRY(dp_snapshot_check_place(j->o->output));
	DP_TRY(list_processes(j));
	DP_TRY(dp_snap_capture_create(&wanted, &j->take));
	DP_TRY(take_all(j));
	if (j->written || j->failed)
		return NULL;
	return dp_error(DP_TAG_NO_PROCESS, "all %zu processes that were found have ended since", j->o->trace.npids);
}

int dp_command_snapshot(const struct dp_options *options)
{
	struct shooting j = {.o = options};
	dp_module_log_init(&j.log, options);
	struct dp_error *err = take(&j);
	dp_snap_capture_destroy(j.take);
	const bool whole = !j.log.errors && !j.failed;
	dp_module_log_fini(&j.log);
	free(j.pid);
	dp_error_print(err, stderr);
	const bool failed = err || (j.failed && !j.written);
	dp_error_destroy(err);
	return failed ? DP_EXIT_FAILURE : whole ? 0 : DP_EXIT_PARTIAL;
}

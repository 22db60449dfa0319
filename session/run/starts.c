/* SPDX-License-Identifier: MIT */
#include "session/run/starts_internal.h"

#include "injector/open/adopt.h"
#include "injector/tracee/exec/exec_catch.h"
#include "injector/tracee/exec/exec_tree.h"
#include "injector/tracee/proc/named.h"
#include "injector/tracee/proc/proc.h"
#include "session/process/everywhere.h"
#include "session/process/session_scope.h"
#include "session/run/lttng_run.h"
#include "session/run/past.h"
#include "session/run/patterns.h"
#include "session/run/processes.h"
#include "session/run/snapshots.h"
#include "session/run/summary.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTES 10u /* processes that are named because they are not probed, or late */

/* ---- programs -------------------------------------------------------------------------------------------------------------- */

static struct dp_error *add_path(struct dp_starts *s, const char *path)
{
	char **grown = realloc(s->path, (s->npaths + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	s->path = grown;
	s->path[s->npaths] = strdup(path);
	return s->path[s->npaths] ? (s->npaths++, NULL) : dp_error_nomem();
}

static void free_paths(struct dp_starts *s)
{
	for (size_t i = 0; i < s->npaths; i++)
		free(s->path[i]);
	free(s->path);
}

/* All files of that name in PATH: another process may have another order. */
static struct dp_error *search(struct dp_starts *s, const char *name)
{
	const char *list = getenv("PATH");
	char path[4096];
	const size_t before = s->npaths;
	for (list = list ? list : "/bin:/usr/bin"; *list;) {
		const size_t n = strcspn(list, ":");
		const bool fits = (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)n, list, name) < sizeof(path);
		if (n && fits && !access(path, X_OK))
			DP_TRY(add_path(s, path));
		list += n + (list[n] == ':');
	}
	if (s->npaths > before)
		return NULL;
	return dp_error(DP_TAG_EXEC, "no program '%s' is in PATH: give --program its path", name);
}

static struct dp_error *find_programs(const struct dp_run *run, struct dp_starts *s)
{
	for (size_t i = 0; i < run->trace->programs.n; i++) {
		const char *program = run->trace->programs.item[i];
		DP_TRY(strchr(program, '/') ? add_path(s, program) : search(s, program));
	}
	return NULL;
}

static bool is_wanted(const struct dp_run *run, pid_t pid)
{
	for (size_t i = 0; i < run->trace->programs.n; i++) {
		const char *program = run->trace->programs.item[i];
		if (strchr(program, '/') ? dp_proc_executes(pid, program) : dp_proc_is_named(pid, program))
			return true;
	}
	return false;
}

struct listed {
	struct dp_run *run;
	struct dp_error *(*each)(struct dp_run *run, pid_t pid);
	struct dp_error *err;
};

static bool on_process(pid_t pid, void *data)
{
	struct listed *l = data;
	l->err = pid != getpid() && is_wanted(l->run, pid) ? l->each(l->run, pid) : NULL;
	return !l->err;
}

struct dp_error *dp_starts_begin(struct dp_run *run, struct dp_error *(*each)(struct dp_run *run, pid_t pid))
{
	if (run->trace->all)
		return dp_starts_all_begin(run, each);
	if (!run->trace->programs.n)
		return NULL;
	struct dp_starts *s = run->starts = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	DP_TRY(find_programs(run, s));
	if (!run->trace->dry_run) /* first: a process that executes it now is in the list, or waits */
		DP_TRY(dp_exec_watch_create(&(struct dp_exec_watched){.path = (const char *const *)s->path,
		                                                      .npaths = s->npaths,
		                                                      .wait_ns = run->trace->max_wait_ns},
		                            &s->watch));
	struct listed l = {run, each, NULL};
	if (!dp_proc_each(on_process, &l))
		return dp_error_sys(DP_TAG_SYS, "opening /proc");
	return l.err;
}

/* Of --follow-exec. A wrong one is not the command's error (DP-EXEC). */
static struct dp_error *find_executed(const struct dp_run *run, struct dp_starts *s)
{
	const struct dp_word_list *only = &run->trace->follow_exec;
	s->name = calloc(only->n + 1, sizeof(*s->name));
	if (!s->name)
		return dp_error_nomem();
	for (size_t i = 0; i < only->n; i++) {
		if (!strchr(only->item[i], '/'))
			s->name[s->nnames++] = only->item[i];
		else if (access(only->item[i], F_OK))
			return dp_error_sys(DP_TAG_USAGE, "--follow-exec %s", only->item[i]);
		else
			DP_TRY(add_path(s, only->item[i]));
	}
	return NULL;
}

static struct dp_error *begin_follow(struct dp_run *run)
{
	struct dp_starts *s = run->starts;
	s->tree = dp_exec_tree_create();
	if (!s->tree)
		return dp_error_nomem();
	for (size_t i = 0; i < run->nsessions; i++)
		dp_exec_tree_add(s->tree, dp_target_pid(run->session[i]->target));
	s->noriginals = run->nsessions;
	DP_TRY(find_executed(run, s));
	return dp_exec_watch_create(&(struct dp_exec_watched){.path = (const char *const *)s->path,
	                                                      .npaths = s->npaths,
	                                                      .name = s->name,
	                                                      .nnames = s->nnames,
	                                                      .tree = s->tree,
	                                                      .wait_ns = run->trace->max_wait_ns},
	                            &s->watch);
}

struct dp_error *dp_starts_follow(struct dp_run *run)
{
	const struct dp_trace_spec *trace = run->trace;
	if (!trace->follow || dp_trace_awaits(trace) || trace->dry_run)
		return NULL;
	run->starts = calloc(1, sizeof(*run->starts));
	struct dp_error *err = run->starts ? begin_follow(run) : dp_error_nomem();
	for (size_t i = 0; !err && i < run->nsessions; i++)
		run->session[i]->partial = true;
	if (!err || err->tag != DP_TAG_PERMISSION || trace->follow_exec.n)
		return err;
	dp_trace_log(trace, DP_LOG_INFO,
	             "programs that the processes execute are not probed: that needs CAP_SYS_ADMIN (fanotify)");
	dp_error_destroy(err);
	dp_starts_fini(run);
	return NULL;
}

static struct dp_error *expand_by(struct dp_run *run, const char *path)
{
	struct dp_image *image = NULL;
	DP_TRY(dp_image_from_file(path, &image));
	struct dp_error *err = dp_expand(run->trace, image, &run->expanded);
	dp_image_destroy(image);
	return err;
}

/* The files are those of the paths, and those that the names have in PATH. */
struct dp_error *dp_starts_expand(struct dp_run *run, const struct dp_session *s, struct dp_error *why)
{
	struct dp_starts files = {0};
	for (size_t i = 0; i < run->trace->follow_exec.n; i++) {
		const char *item = run->trace->follow_exec.item[i];
		dp_error_destroy(strchr(item, '/') ? add_path(&files, item) : search(&files, item));
	}
	for (size_t i = 0; i < files.npaths && !run->expanded.trace.probe; i++)
		dp_error_destroy(expand_by(run, files.path[i]));
	free_paths(&files);
	if (run->expanded.trace.probe)
		return dp_error_destroy(why);
	if (why->tag == DP_TAG_STRIPPED) /* symbols of this program would not help */
		why->tag = DP_TAG_NO_SYMBOL;
	return dp_error_wrap(why,
	                     "--follow looks up patterns and returns in %d (%s): where only a program that it executes has them, "
	                     "name that with --follow-exec PATH",
	                     dp_target_pid(s->target), dp_target_comm(s->target));
}

void dp_starts_hold(const struct dp_run *run)
{
	if (run->starts && run->starts->watch)
		dp_exec_watch_hold(run->starts->watch);
	if (run->starts && run->starts->all)
		dp_everywhere_hurry(run->starts->all);
}

static void log_absent(const struct dp_session *s, size_t i)
{
	const char *near = dp_session_near(s, i, s->place[i].refused);
	dp_trace_log(s->trace, DP_LOG_INFO, "'%s' is not in %d (%s)%s%s looking for it in programs that it executes",
	             s->trace->probe[i].spec.text, dp_target_pid(s->target), dp_target_comm(s->target), near, *near ? "" : ":");
}

void dp_starts_log_absent(const struct dp_run *run)
{
	for (size_t k = 0; run->starts && run->starts->tree && k < run->nsessions; k++)
		for (size_t i = 0; i < run->trace->nprobes; i++)
			if (run->session[k]->place[i].absent && !run->trace->probe[i].selected)
				log_absent(run->session[k], i);
}

bool dp_starts_lives(const struct dp_run *run)
{
	return run->starts && (!run->starts->tree || dp_exec_tree_lives(run->starts->tree));
}

/* ---- processes ------------------------------------------------------------------------------------------------------------- */

void dp_starts_note(struct dp_run *run, pid_t pid, const char *what, const struct dp_error *why)
{
	char text[512];
	if (run->starts->notes++ >= NOTES)
		return;
	snprintf(text, sizeof(text), "process %d %s%s%s%s%s%s", pid, what, why ? ": " : "", why ? why->message : "",
	         why ? " [" : "", why ? dp_tag_name(why->tag) : "", why ? "]" : "");
	dp_run_note(run, text);
}

void dp_starts_refuse(struct dp_run *run, pid_t pid, struct dp_error *why)
{
	run->starts->count.started++;
	run->starts->count.unprobed++;
	if (run->starts->all)
		dp_everywhere_know(run->starts->all, pid);
	dp_starts_note(run, pid, "is not probed", why);
	if (run->resolved)
		dp_past_refuse(run, why);
	else
		dp_error_destroy(why);
}

/*
 * The sessions of programs that the process executed before. One whose fork children are followed goes on for them: the loop sees
 * that its program has gone.
 */
static void retire(struct dp_run *run, pid_t pid)
{
	if (run->starts->all)
		dp_everywhere_forget(run->starts->all, pid);
	for (size_t k = run->nsessions; k-- > 0;) {
		struct dp_session *s = run->session[k];
		if (s->ended || dp_target_pid(s->target) != pid)
			continue;
		dp_target_yield(s->target);
		if (k < run->starts->noriginals || dp_target_followed(s->target))
			continue;
		s->ended = true;
		dp_run_drain(run, false);
		dp_run_note_losses(run);
		dp_past_take(run, k);
	}
}

/* Its libraries may not be mapped yet: what the first process lacks ends the run, so it must not be this one. */
static bool is_unready(const struct dp_run *run, const struct dp_exec_caught *caught)
{
	return caught->late && !run->resolved && !run->starts->all;
}

static struct dp_error *arm(struct dp_run *run, struct dp_session *s)
{
	DP_TRY(dp_session_resolve(s));
	if (s->partial)
		dp_session_scope_late(s, dp_run_fields_known, run);
	else
		DP_TRY(dp_session_scope(s));
	DP_TRY(dp_snapshots_admit(run, s));
	DP_TRY(dp_lttng_join(run, s));
	return dp_session_install(s);
}

bool dp_starts_is_other(const struct dp_session *s)
{
	for (size_t i = 0; i < s->trace->nprobes; i++)
		if (!s->place[i].absent && !s->trace->probe[i].reserved)
			return false;
	return s->partial;
}

/* What a process that has ended had mapped is not known any more. */
static struct dp_error *check_alive(const struct dp_session *s)
{
	struct pollfd end = {.fd = dp_target_exit_fd(s->target), .events = POLLIN};
	return poll(&end, 1, 0) > 0 ? dp_error(DP_TAG_GONE, "it ended before its probes were there") : NULL;
}

struct dp_error *dp_starts_admit(struct dp_run *run, struct dp_session *s, bool late)
{
	s->partial = run->starts->tree || run->starts->all;
	struct dp_error *err = run->resolved ? arm(run, s) : NULL;
	const bool other = !err && run->resolved && dp_starts_is_other(s);
	if (other && late)
		err = check_alive(s);
	if (err || other) {
		s->swept |= other; /* nothing was changed that a child could have inherited */
		dp_session_destroy(s);
		return err;
	}
	DP_TRY(dp_run_add_session(run, s));
	run->starts->count.started++;
	run->starts->count.late += late;
	if (late)
		dp_starts_note(run, dp_target_pid(s->target), "began before its probes were there: its first hits are missing",
		               NULL);
	if (!run->resolved)
		return NULL;
	dp_patterns_judge(run);
	dp_lttng_settle_one(run, s);
	return dp_target_release(s->target);
}

/* False: none waited. */
static bool take_one(struct dp_run *run)
{
	struct dp_exec_caught caught;
	struct dp_session *s = NULL;
	struct dp_error *err = dp_exec_catch(run->starts->watch, &caught);
	if (!caught.pid)
		return false;
	if (run->starts->all && dp_starts_all_settles(run, &caught, &err))
		return true;
	if (!err && !caught.launch && !caught.late)
		return true;
	if (!err)
		retire(run, caught.pid);
	if (!err && is_unready(run, &caught))
		err = dp_error(DP_TAG_UNSTOPPABLE, "it began before dynprobe could hold it, and another process must come first");
	if (!err)
		err = caught.launch ? dp_session_adopt(run->trace, caught.launch, caught.pid, &s)
		                    : dp_session_open(run->trace, caught.pid, &s);
	if (!err)
		err = dp_starts_admit(run, s, caught.late);
	if (err && !dp_starts_all_excuses(run, err))
		dp_starts_refuse(run, caught.pid, err);
	return true;
}

void dp_starts_round(struct dp_run *run)
{
	if (run->starts && run->starts->all)
		dp_starts_all_round(run);
	if (!run->starts || !run->starts->watch)
		return;
	dp_exec_catch_settle();
	/* Before its probes are resolved, the first process defines what the others get. */
	while ((run->resolved || !run->nsessions) && take_one(run) && !dp_run_interrupted(run) && !dp_run_has_all(run)) {
		dp_snapshots_round(run); /* its hits may wait already, before the next process has its probes */
		if (run->trace->pending) /* a library that it loads has its turn first */
			return;
	}
}

void dp_starts_reap(struct dp_run *run)
{
	for (size_t k = run->starts ? run->nsessions : 0; k-- > (run->starts ? run->starts->noriginals : 0);)
		if (run->session[k]->ended) {
			if (run->starts->all)
				dp_everywhere_forget(run->starts->all, dp_target_pid(run->session[k]->target));
			dp_past_take(run, k);
		}
}

int dp_starts_fd(const struct dp_run *run)
{
	return run->starts && run->starts->watch ? dp_exec_watch_fd(run->starts->watch) : -1;
}

void dp_starts_leave(struct dp_run *run)
{
	if (!run->starts)
		return;
	run->starts->watch = dp_exec_watch_destroy(run->starts->watch);
	dp_exec_catch_settle();
}

bool dp_starts_counts(const struct dp_run *run, struct dp_summary_programs *ret)
{
	if (run->starts)
		*ret = run->starts->count;
	if (run->starts && run->starts->all)
		ret->denied = dp_everywhere_denied(run->starts->all);
	return run->starts && (!run->starts->tree || ret->started || ret->unprobed);
}

void dp_starts_fini(struct dp_run *run)
{
	if (!run->starts)
		return;
	dp_starts_leave(run);
	dp_exec_tree_destroy(run->starts->tree);
	free_paths(run->starts);
	free(run->starts->name);
	dp_everywhere_destroy(run->starts->all);
	dp_error_destroy(run->starts->nowhere);
	free(run->starts);
	run->starts = NULL;
	run->past = dp_past_destroy(run->past);
}

/* SPDX-License-Identifier: MIT */
/*
 * --all: processes that map a module. Its file is watched: a loader that opens it while it prepares a program is held, and the
 * program is probed before it begins; and so is dlopen() in a process of one thread, before the module's own code runs. All
 * others are found by looking at /proc, and are late: dlopen() beside other threads, a file that was not known, a user who may
 * not watch.
 *
 * A probe without a module may have its place in any program: then every exec is held.
 */
#include "session/run/starts_internal.h"

#include "injector/tracee/proc/mappers.h"
#include "session/process/everywhere.h"
#include "session/run/processes.h"

#include <stdlib.h>
#include <string.h>

static struct dp_error *watch(struct dp_run *run, struct dp_starts *s)
{
	const char *const *file = dp_everywhere_files(s->all, &s->nfiles);
	const bool any = dp_everywhere_is_any(s->all);
	struct dp_error *err = dp_exec_watch_create(&(struct dp_exec_watched){.path = any ? NULL : file,
	                                                                      .npaths = any ? 0 : s->nfiles,
	                                                                      .all = any,
	                                                                      .modules = !any,
	                                                                      .wait_ns = run->trace->max_wait_ns},
	                                            &s->watch);
	if (!err || err->tag != DP_TAG_PERMISSION)
		return err;
	dp_trace_log(
	        run->trace, DP_LOG_INFO,
	        "processes to come are looked for once a second and probed late, and those that end sooner are missed: to hold "
	        "them until they are probed takes CAP_SYS_ADMIN (fanotify)");
	return dp_error_destroy(err);
}

/* ---- a probe without a module ---------------------------------------------------------------------------------------------- */

static bool is_in(const struct dp_trace_spec *trace, size_t i, struct dp_image *image)
{
	struct dp_trace_spec one = *trace;
	struct dp_expansion found = {0};
	struct dp_site site;
	one.probe = &trace->probe[i];
	one.typed = &trace->typed[i];
	one.nprobes = 1;
	one.calls = NULL;
	struct dp_error *err =
	        dp_expands(&one) ? dp_expand(&one, image, &found) : dp_image_resolve(image, &one.probe->spec, &site);
	dp_expansion_fini(&found);
	dp_error_destroy(err);
	return !err;
}

/* Opening a process takes its lock, and removes what a killed dynprobe left. One that has no place is only looked at. */
static bool may_have_place(const struct dp_run *run, pid_t pid)
{
	const struct dp_target_options only_look = {.look = true, .allow_seccomp = true};
	struct dp_target *t = NULL;
	bool found = false;
	if (!dp_everywhere_is_any(run->starts->all))
		return true;
	struct dp_error *err = dp_target_open(pid, &only_look, &t);
	for (size_t i = 0; !err && !found && i < run->trace->nprobes; i++)
		found = is_in(run->trace, i, dp_target_image(t));
	dp_target_close(t);
	dp_error_destroy(err);
	return found;
}

/* ---- now ------------------------------------------------------------------------------------------------------------------- */

static struct dp_error *open_found(struct dp_run *run, const pid_t *pid, size_t n,
                                   struct dp_error *(*each)(struct dp_run *run, pid_t pid))
{
	for (size_t i = 0; i < n; i++)
		if (may_have_place(run, pid[i])) {
			dp_everywhere_know(run->starts->all, pid[i]);
			DP_TRY(each(run, pid[i]));
		}
	for (size_t k = 0; k < run->nsessions; k++)
		run->session[k]->partial = true;
	return NULL;
}

struct dp_error *dp_starts_all_begin(struct dp_run *run, struct dp_error *(*each)(struct dp_run *run, pid_t pid))
{
	const pid_t *pid;
	size_t n;
	struct dp_starts *s = run->starts = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	DP_TRY(dp_everywhere_create(run->trace, &s->all));
	DP_TRY(dp_everywhere_look(s->all, false, &pid, &n)); /* first: it finds the files */
	if (!run->trace->dry_run)
		DP_TRY(watch(run, s));
	DP_TRY(open_found(run, pid, n, each));
	if (!run->nsessions) /* nobody can be waited for */
		dp_starts_hold(run);
	return NULL;
}

/* ---- processes without a place --------------------------------------------------------------------------------------------- */

static bool is_about_places(const struct dp_error *err)
{
	return err->tag == DP_TAG_NO_SYMBOL || err->tag == DP_TAG_STRIPPED || err->tag == DP_TAG_NO_MODULE;
}

/* The first module without the place is remembered. Without a module any program may be without it. */
static void remember(struct dp_starts *s, const struct dp_error *err)
{
	if (!s->nowhere && err->tag != DP_TAG_NO_MODULE && !dp_everywhere_is_any(s->all))
		s->nowhere = dp_error(err->tag, "%s", err->message);
}

bool dp_starts_lacks(struct dp_run *run, struct dp_error *err)
{
	if (!run->trace->all || !is_about_places(err))
		return false;
	remember(run->starts, err);
	dp_error_destroy(err);
	return true;
}

static void remember_all(struct dp_starts *s, const struct dp_session *of)
{
	for (size_t i = 0; of->place && i < of->trace->nprobes; i++)
		if (of->place[i].refused)
			remember(s, of->place[i].refused);
}

struct dp_error *dp_starts_drop(struct dp_run *run, bool all)
{
	size_t kept = 0;
	if (!run->trace->all)
		return NULL;
	for (size_t i = 0; i < run->nsessions; i++) {
		struct dp_session *s = run->session[i];
		if (!all && !dp_starts_is_other(s)) {
			run->session[kept++] = s;
			continue;
		}
		remember_all(run->starts, s);
		s->swept = true; /* nothing was changed */
		dp_session_destroy(s);
	}
	run->nsessions = kept;
	return NULL;
}

struct dp_error *dp_starts_nowhere(struct dp_run *run)
{
	return dp_take(run->starts->nowhere, NULL);
}

/* ---- later ----------------------------------------------------------------------------------------------------------------- */

static void watch_more(struct dp_starts *s)
{
	size_t n;
	const char *const *file = dp_everywhere_files(s->all, &n);
	for (; s->nfiles < n; s->nfiles++)
		if (s->watch && !dp_everywhere_is_any(s->all))
			dp_exec_watch_add(s->watch, file[s->nfiles]);
}

static bool is_open(const struct dp_run *run, pid_t pid)
{
	for (size_t k = 0; k < run->nsessions; k++)
		if (!run->session[k]->ended && dp_target_pid(run->session[k]->target) == pid)
			return true;
	return false;
}

static void take_late(struct dp_run *run, pid_t pid)
{
	struct dp_session *s = NULL;
	if (is_open(run, pid) || !may_have_place(run, pid))
		return;
	dp_everywhere_know(run->starts->all, pid);
	struct dp_error *err = dp_session_open(run->trace, pid, &s);
	if (!err)
		err = dp_starts_admit(run, s, true);
	if (err && !dp_starts_all_excuses(run, err))
		dp_starts_refuse(run, pid, err);
}

void dp_starts_all_round(struct dp_run *run)
{
	struct dp_starts *s = run->starts;
	const pid_t *pid;
	size_t n;
	if (!dp_everywhere_is_due(s->all) || (!run->resolved && run->nsessions))
		return;
	struct dp_error *err = dp_everywhere_look(s->all, true, &pid, &n);
	watch_more(s);
	for (size_t i = 0; !err && i < n && !dp_run_interrupted(run) && !dp_run_has_all(run); i++)
		take_late(run, pid[i]);
	dp_error_destroy(err); /* the next look may have more memory */
}

/* The process has its probes, and what it is about to map may have places that it lacked so far. */
static void note_more(struct dp_run *run, pid_t pid)
{
	bool lacks = false;
	for (size_t k = 0; k < run->nsessions; k++) {
		const struct dp_session *s = run->session[k];
		for (size_t i = 0; dp_target_pid(s->target) == pid && s->place && i < run->trace->nprobes; i++)
			lacks |= s->place[i].absent || s->place[i].retired;
	}
	if (lacks)
		dp_starts_note(run, pid, "opens a module after its probes were placed: hits there are missed", NULL);
}

bool dp_starts_all_settles(struct dp_run *run, struct dp_exec_caught *caught, struct dp_error **err)
{
	if (*err ? (*err)->tag == DP_TAG_UNSTOPPABLE : caught->loads) { /* looking finds it */
		*err = dp_error_destroy(*err);
		note_more(run, caught->pid);
		dp_everywhere_hurry(run->starts->all);
		return true;
	}
	if (caught->launch && dp_mapper_is_tool(caught->pid)) {
		dp_launch_destroy(caught->launch);
		dp_everywhere_know(run->starts->all, caught->pid);
		return true;
	}
	if (caught->launch && !dp_everywhere_is_any(run->starts->all)) /* else it may map other files later */
		dp_everywhere_know(run->starts->all, caught->pid);
	return false;
}

/* ldd runs the loader alone; and what ends that soon is nobody's loss. */
bool dp_starts_all_excuses(const struct dp_run *run, struct dp_error *err)
{
	if (!run->trace->all || (err->tag != DP_TAG_GONE && err->tag != DP_TAG_NO_PROCESS && err->tag != DP_TAG_ZOMBIE))
		return false;
	dp_error_destroy(err);
	return true;
}

/* SPDX-License-Identifier: MIT */
/* The order of a snapshot. As much as possible is done before the stop (modules are loaded, debug information is read for the
 * stacks at that time) and after the release, since the threads wait in between. */
#include "pmodules/capture/capture_internal.h"

#include "pmodules/fault/fault.h"
#include "pmodules/load/load.h"
#include "pmodules/source/core.h"
#include "pmodules/source/pages.h"

#include "base/cleanup.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/tracee.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define USUAL_NS UINT64_C(1000000000) /* limit of a hold without modules; modules have their own limits */

struct dp_snap_capture {
	struct dp_snap_capture_options options;
	struct dp_host *host;
	struct taking *ready; /* from dp_snap_capture_prefetch(), or NULL */
	struct taking *kept;  /* left by a snapshot for the next, or NULL */
};

static struct dp_error *load_modules(struct dp_snap_capture *t)
{
	const struct dp_snap_capture_options *o = &t->options;
	for (size_t i = 0; o->module_options && o->module_options[i]; i++)
		DP_TRY(dp_host_option(t->host, o->module_options[i]));
	for (size_t i = 0; o->modules && o->modules[i]; i++)
		DP_TRY(dp_host_load(t->host, o->modules[i]));
	for (size_t i = 0; o->module_dirs && o->module_dirs[i]; i++)
		DP_TRY(dp_host_load_dir(t->host, o->module_dirs[i]));
	if (o->of_core)
		dp_host_load_ready(t->host, "stl");
	return NULL;
}

struct dp_error *dp_snap_capture_create(const struct dp_snap_capture_options *options, struct dp_snap_capture **ret)
{
	struct dp_snap_capture *t = calloc(1, sizeof(*t));
	if (!t)
		return dp_error_nomem();
	t->options = *options;
	t->options.still.work_ns = options->module_timeout_ns;
	const struct dp_host_options host = {.lua_allow = options->lua_allow,
	                                     .budget_ns = options->module_timeout_ns,
	                                     .pmap = true, /* every snapshot has the memory map */
	                                     .log = options->log,
	                                     .data = options->data,
	                                     .limits = options->limits};
	struct dp_error *err = dp_host_create(&host, &t->host);
	if (!err)
		err = load_modules(t);
	if (err) {
		dp_snap_capture_destroy(t);
		return err;
	}
	t->options.still.usual_ns = dp_host_wants_held(t->host) ? 0 : USUAL_NS;
	*ret = t;
	return NULL;
}

struct dp_snap_capture *dp_snap_capture_destroy(struct dp_snap_capture *t)
{
	if (!t)
		return NULL;
	dp_taking_destroy(t->ready);
	dp_taking_destroy(t->kept);
	dp_host_destroy(t->host);
	free(t);
	return NULL;
}

struct dp_host *dp_snap_capture_host(struct dp_snap_capture *t)
{
	return t->host;
}

/* ---- before ---- */

/* Before the hold, reads the running process: shows which memory is needed. */
static size_t read_memory(uint64_t addr, void *buf, size_t n, bool *late, void *data)
{
	const struct taking *k = data;
	if (late)
		*late = false;
	return k->s->time_ns ? dp_stopped_read(k->still, addr, buf, n, late) : dp_stopped_peek(k->still, addr, buf, n);
}

/* For debug information that the prefetch missed: releases the threads if their time is over. */
static void before_load(void *data)
{
	const struct taking *k = data;
	const bool was_held = dp_stopped_is_held(k->still);
	dp_stopped_in_time(k->still);
	if (was_held && !dp_stopped_is_held(k->still))
		dp_snapshot_truncated(k->s, "the pause: --max-pause was over before all debug information was loaded; "
		                            "what follows was read later");
}

static void begin_facts(struct taking *k)
{
	static const char *const modes[] = {
	        [DP_STOPPED_STOP] = "stop", [DP_STOPPED_FORK] = "fork", [DP_STOPPED_QUICK] = "quick", [DP_STOPPED_CORE] = "core"};
	const struct dp_snap_capture_options *o = &k->take->options;
	struct dp_snapshot *s = k->s;
	struct dp_task_stat stat;
	dp_snap_capture_identity(s, k->still);
	s->mode = modes[dp_stopped_mode(k->still)];
	s->dynprobe = dp_snapshot_text(s, o->version);
	s->application = o->application ? dp_snapshot_text(s, o->application) : s->comm;
	if (dp_stopped_mode(k->still) != DP_STOPPED_CORE && dp_proc_stat(s->pid, 0, &stat))
		s->process_state = stat.state;
	dp_snapshot_set_text(s, "application", s->application);
	dp_snapshot_set_int(s, "process.id", s->pid);
	for (size_t i = 0; i < o->npairs; i++)
		dp_snapshot_set_text(s, o->pairs[i].key, o->pairs[i].value);
	for (size_t i = 0; o->classifiers && o->classifiers[i]; i++)
		dp_snapshot_classify(s, o->classifiers[i]);
	for (size_t i = 0; o->tags && o->tags[i]; i++)
		dp_snapshot_tag(s, o->tags[i]);
}

static struct dp_error *prepare_world(struct taking *k)
{
	const struct dp_snap_capture_options *o = &k->take->options;
	const struct dp_extract_options wanted = {.limits = o->limits,
	                                          .no_variables = o->no_variables,
	                                          .no_values = !dp_host_nmodules(k->take->host),
	                                          .globals = o->globals,
	                                          .tls = o->tls,
	                                          .load = o->load};
	if (k->world && k->extract) { /* kept from the previous snapshot */
		dp_debug_ctx_renew(k->world);
		dp_extract_renew(k->extract);
		return NULL;
	}
	DP_TRY(dp_debug_ctx_create(dp_stopped_image(k->still), read_memory, k, &k->world));
	dp_debug_ctx_before_load(k->world, before_load);
	return dp_extract_create(k->world, &wanted, &k->extract);
}

static struct dp_error *prepare(struct taking *k)
{
	k->s = dp_snapshot_create();
	if (!k->s)
		return dp_error_nomem();
	begin_facts(k);
	DP_TRY(prepare_world(k));
	dp_snap_capture_image(k->s, dp_stopped_image(k->still)); /* modules ask for maps during the hold */
	dp_host_begin(k->take->host, k->s);
	dp_host_preattach(k->take->host);
	return NULL;
}

static bool is_wanted(const struct taking *k, pid_t tid)
{
	const struct dp_snap_capture_options *o = &k->take->options;
	for (size_t i = 0; i < o->nthreads; i++)
		if (o->threads[i] == tid)
			return true;
	return !o->nthreads;
}

static void rehearse_one(const struct dp_stopped_thread *t, void *data)
{
	const struct taking *k = data;
	if (!is_wanted(k, t->tid))
		return;
	dp_extract_rehearse(k->extract, t);
	struct dp_snapshot *scratch = k->take->options.tls ? dp_snapshot_create() : NULL;
	struct dp_snap_thread *into = scratch ? dp_snapshot_thread(scratch, t->tid) : NULL;
	if (into)
		dp_extract_tls(k->extract, t, into);
	dp_snapshot_destroy(scratch);
}

static void rehearse_globals(const struct taking *k)
{
	const struct dp_snap_capture_options *o = &k->take->options;
	struct dp_snapshot *scratch = o->globals || o->load ? dp_snapshot_create() : NULL;
	if (scratch)
		dp_extract_globals(k->extract, scratch);
	dp_snapshot_destroy(scratch);
}

static struct dp_error *rehearse(struct taking *k)
{
	const uint64_t from = dp_now_ns();
	if (dp_stopped_mode(k->still) == DP_STOPPED_CORE)
		return NULL;
	DP_TRY(dp_stopped_sample(k->still, rehearse_one, k));
	rehearse_globals(k);
	k->s->rehearsal_ns = dp_now_ns() - from;
	return NULL;
}

/* A parked thread is in the agent, so its probed place needs its own prefetch. */
static void rehearse_hit(struct taking *k)
{
	const struct dp_stopped_hit *hit = k->take->options.still.hit;
	if (!hit)
		return;
	const struct dp_stopped_thread at = {
	        .tid = hit->ns_tid, .state = '?', .regs = hit->regs, .syscall = -1, .is_fault = true};
	dp_extract_rehearse(k->extract, &at);
}

/* ---- the moment ---- */

static bool is_faulting(const struct taking *k, const struct dp_stopped_thread *t)
{
	const struct dp_snap_capture_options *o = &k->take->options;
	for (size_t i = 0; i < o->nfaults; i++)
		if (o->faults[i] == t->tid)
			return true;
	return t->is_fault;
}

static struct dp_error *extract_one(struct taking *k, const struct dp_stopped_thread *t)
{
	struct dp_stopped_thread as = *t;
	as.is_fault = is_faulting(k, t);
	struct dp_snap_thread *into = dp_extract_thread(k->extract, &as, k->s);
	if (!into)
		return dp_error_nomem();
	dp_snap_capture_thread_facts(k->s, &as, into);
	if (dp_snap_thread_is_subject(into))
		dp_fault_explain(k->world, &as, into);
	if (k->take->options.tls)
		dp_extract_tls(k->extract, &as, into);
	return NULL;
}

static struct dp_error *extract_all(struct taking *k)
{
	const size_t n = dp_stopped_nthreads(k->still);
	for (int faulting = 1; faulting >= 0; faulting--)
		for (size_t i = 0; i < n; i++) {
			const struct dp_stopped_thread *t = dp_stopped_thread(k->still, i);
			if (is_wanted(k, t->tid) && is_faulting(k, t) == (faulting == 1))
				DP_TRY(extract_one(k, t));
		}
	dp_snap_capture_missing(k->s, k->still, k->take->options.threads, k->take->options.nthreads);
	dp_snap_capture_missing(k->s, k->still, k->take->options.faults, k->take->options.nfaults);
	dp_extract_globals(k->extract, k->s);
	return NULL;
}

static void run_modules(struct taking *k)
{
	for (struct dp_snap_thread *t = k->s->threads; t; t = t->next)
		dp_host_thread(k->take->host, t);
	dp_host_globals(k->take->host);
}

/*
 * In mode stop, prefetched memory is read again while all threads are stopped, and they are released at once. If the frames then
 * turn out to need more, a new hold begins, with that memory included. If a program keeps needing more, it is held until all is
 * read. So threads wait for reads, and rarely for computation.
 */
#define SHORT_HOLDS 3

struct marks { /* the ends of lists that extraction appends to */
	struct dp_snap_word *classifiers, *truncations;
	struct dp_snap_note *notes;
};

static struct marks set_marks(const struct dp_snapshot *s)
{
	return (struct marks){s->classifiers ? s->classifiers->prev : NULL, s->truncations ? s->truncations->prev : NULL,
	                      s->notes ? s->notes->prev : NULL};
}

/* Truncates the list after `tail`, or empties it. */
#define CUT(list, tail)                                                                                                          \
	do {                                                                                                                     \
		if (tail)                                                                                                        \
			(tail)->next = NULL;                                                                                     \
		if (tail)                                                                                                        \
			(list)->prev = (tail);                                                                                   \
		else                                                                                                             \
			(list) = NULL;                                                                                           \
	} while (0)

static void go_back(struct dp_snapshot *s, const struct marks *m)
{
	s->threads = NULL;
	s->nthreads = 0;
	s->globals = NULL;
	CUT(s->classifiers, m->classifiers);
	CUT(s->truncations, m->truncations);
	CUT(s->notes, m->notes);
}

static struct dp_error *hold(struct taking *k, bool shortly)
{
	struct timespec now;
	DP_TRY(dp_stopped_hold(k->still));
	clock_gettime(CLOCK_REALTIME, &now);
	k->s->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (shortly || dp_stopped_mode(k->still) == DP_STOPPED_QUICK)
		dp_stopped_release(k->still);
	return NULL;
}

static struct dp_error *moment(struct taking *k)
{
	struct dp_host *host = k->take->host;
	const bool modules = dp_host_wants_held(host);
	const struct marks marks = set_marks(k->s);
	const int tries = !modules ? SHORT_HOLDS : 0;
	for (int tried = 0;; tried++) {
		const bool shortly = tried < tries && dp_stopped_mode(k->still) == DP_STOPPED_STOP;
		DP_TRY(hold(k, shortly));
		dp_host_set_debug_ctx(host, k->world);
		dp_host_set_stopped(host, k->still);
		if (!tried)
			dp_host_attach(host);
		DP_TRY(extract_all(k));
		if (!shortly || !dp_stopped_nlate(k->still) || !dp_stopped_may_hold_again(k->still))
			break;
		go_back(k->s, &marks);
	}
	if (modules)
		run_modules(k);
	dp_stopped_release(k->still);
	dp_stopped_let_go(k->still);
	return NULL;
}

/* ---- after ---- */

static void keep_memory(uint64_t addr, const uint8_t *bytes, size_t n, void *data)
{
	struct dp_snapshot *s = data;
	uint8_t *copy = s->memory ? dp_arena_alloc(&s->arena, n) : NULL;
	if (copy)
		s->memory[s->nmemory++] = (struct dp_snap_memory){addr, n, memcpy(copy, bytes, n)};
}

static void count_memory(uint64_t addr, const uint8_t *bytes, size_t n, void *data)
{
	(void)addr;
	(void)bytes;
	(void)n;
	++*(size_t *)data;
}

static void take_memory(struct taking *k)
{
	size_t n = 0;
	dp_stopped_kept(k->still, count_memory, &n);
	k->s->memory = dp_arena_alloc(&k->s->arena, (n + 1) * sizeof(*k->s->memory));
	dp_stopped_kept(k->still, keep_memory, k->s);
}

static void take_times(struct taking *k, uint64_t from)
{
	struct dp_stopped_times times;
	struct dp_snapshot *s = k->s;
	dp_stopped_times(k->still, &times);
	s->stop_ns = times.stop_ns;
	s->read_ns = times.read_ns;
	s->pause_ns = times.pause_ns;
	s->held_ns = times.sum_ns;
	s->total_ns = dp_now_ns() - from;
	dp_snapshot_set_int(s, "snapshot.pause.us", (int64_t)(times.pause_ns / 1000));
	dp_snapshot_set_int(s, "snapshot.held.us", (int64_t)(times.sum_ns / 1000));
	dp_snapshot_set_int(s, "snapshot.holds", times.holds);
	dp_snapshot_set_int(s, "snapshot.holds.vain", times.vain);
	dp_snapshot_set_int(s, "snapshot.threads.stop.us", (int64_t)(times.stop_ns / 1000));
	dp_snapshot_set_int(s, "snapshot.bytes", (int64_t)(s->nmemory * DP_PAGE_BYTES));
}

static void finish(struct taking *k, uint64_t from)
{
	struct dp_snapshot *s = k->s;
	if (dp_stopped_mode(k->still) != DP_STOPPED_CORE) {
		dp_snap_capture_facts(s, s->pid, k->take->options.environ);
		dp_snap_capture_statistics(s, s->pid);
		dp_snap_capture_machine(s);
	} else {
		dp_snap_capture_core_facts(s, k->still);
	}
	if (dp_stopped_why_not_fork(k->still)) {
		s->mode = "stop";
		dp_snapshot_note(s, &s->notes, DP_NOTE_WARNING, "");
		s->notes->prev->text =
		        dp_arena_printf(&s->arena, "mode stop instead of fork: %s", dp_stopped_why_not_fork(k->still));
	}
	dp_host_postattach(k->take->host);
	dp_snap_capture_sources(s);
	take_memory(k);
	take_times(k, from);
}

static struct dp_error *prepare_all(struct taking *k)
{
	DP_TRY(prepare(k));
	return rehearse(k);
}

/* Call after prepare_all(). Consumes `k`. */
static struct dp_error *take(struct taking *k, uint64_t from, struct dp_snapshot **ret)
{
	rehearse_hit(k);
	struct dp_error *err = moment(k);
	if (!err)
		finish(k, from);
	if (!err && k->s->arena.failed)
		err = dp_error(DP_TAG_NOMEM, "the snapshot does not fit into 256 MiB: see --max-bytes and the other limits");
	if (err)
		dp_taking_destroy(k);
	else
		*ret = dp_taking_finish(k, &k->take->kept);
	return err;
}

#define OPENINGS 3

/* Reading debug information takes time. If the program mapped a module meanwhile (it may be starting), begin again. */
static struct dp_error *open_current(struct dp_snap_capture *t, pid_t pid, struct taking **ret)
{
	for (int left = OPENINGS;; left--) {
		struct taking *k = NULL;
		DP_TRY(dp_taking_begin(t, dp_take(t->kept, NULL), pid, &t->options.still, &k));
		struct dp_error *err = prepare_all(k);
		if (!err && (left == 1 || dp_stopped_is_current(k->still))) {
			*ret = k;
			return NULL;
		}
		dp_taking_destroy(k);
		DP_TRY(err);
	}
}

/* Drops a prefetch that was not used. */
static void give_up(struct dp_snap_capture *t)
{
	t->ready = dp_taking_destroy(t->ready);
}

struct dp_error *dp_snap_capture_prefetch(struct dp_snap_capture *t, pid_t pid)
{
	give_up(t);
	return open_current(t, pid, &t->ready);
}

/* Is the prefetched state still valid? Its image lacks modules that were mapped since. */
static bool is_ready(const struct dp_snap_capture *t, pid_t pid)
{
	return t->ready && dp_stopped_pid(t->ready->still) == pid && dp_stopped_is_current(t->ready->still);
}

struct dp_error *dp_snap_capture_process(struct dp_snap_capture *t, pid_t pid, struct dp_snapshot **ret)
{
	const uint64_t from = dp_now_ns();
	struct taking *k = NULL;
	if (is_ready(t, pid))
		return take(dp_take(t->ready, NULL), from, ret);
	give_up(t);
	DP_TRY(open_current(t, pid, &k));
	return take(k, from, ret);
}

struct dp_error *dp_snap_capture_core(struct dp_snap_capture *t, const char *core, const char *exe, struct dp_snapshot **ret)
{
	struct taking *k = dp_taking_create(t);
	const uint64_t from = dp_now_ns();
	if (!k)
		return dp_error_nomem();
	struct dp_error *err = dp_stopped_open_core(core, exe, &t->options.still, &k->still);
	if (!err)
		err = prepare_all(k);
	if (!err)
		return take(k, from, ret);
	dp_taking_destroy(k);
	return err;
}

void dp_snap_capture_name(const struct dp_snapshot *s, char *ret, size_t size)
{
	char program[64] = "program";
	const char *name = dp_snapshot_object_name(s, s->exe);
	snprintf(program, sizeof(program), "%s", *name ? name : *s->application ? s->application : program);
	program[strcspn(program, " ")] = '\0'; /* " (deleted)" */
	for (char *p = program; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._+-", *p))
			*p = '_';
	if (!*program || *program == '.' || *program == '-')
		*program = '_';
	snprintf(ret, size, "%s.%d.%llu.dps", program, s->pid, (unsigned long long)(s->time_ns / 1000000u));
}

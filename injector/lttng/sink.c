/* SPDX-License-Identifier: MIT */
/*
 * Loads the LTTng sink: maps it, has one thread of the program call pthread_create, and waits until the new thread is ready. The
 * slow part (dlopen, LTTng's start) happens on that thread while the program runs.
 */
#include "injector/lttng/sink.h"

#include "base/duration.h"
#include "injector/target/group/group.h"
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/stop/freeze.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define POLL_NS      500000L
#define TAKE_BACK_NS UINT64_C(1000000000)
#define THREAD_AT(v) ((v)->data + (v)->head.scratch_offset + (v)->head.scratch_size - 8) /* pthread_create's result */

/* ---- can it be loaded? ----------------------------------------------------------------------------------------------------- */

static struct dp_error *check_filter(const struct dp_target *t)
{
	const char *why = dp_filter_forbids(&t->process, DP_CALLS_ANY);
	if (!why && !dp_filter_forbids(&t->process, DP_CALLS_HIT) && !t->process.seccomp)
		return NULL;
	return dp_error(DP_TAG_SINK, "process %d (%s) runs under a seccomp filter, which may not allow LTTng's system calls (%s)",
	                t->process.pid, t->process.comm, why ? why : dp_filter_forbids(&t->process, DP_CALLS_HIT));
}

static struct dp_error *check_proc(const struct dp_target *t)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/root/proc/self", t->process.alive);
	if (!lstat(path, &st))
		return NULL;
	if (errno != ENOENT && errno != ENOTDIR)
		return dp_error_sys(DP_TAG_SINK, "looking for /proc in the root directory of process %d (%s)", t->process.pid,
		                    t->process.comm);
	return dp_error(DP_TAG_SINK, "process %d (%s) has no /proc in its root directory, which the sink needs to be loaded",
	                t->process.pid, t->process.comm);
}

static struct dp_error *check_symbols(struct dp_sink_view *v)
{
	static const char *const names[] = {"dlopen",         "dlsym",          "dlerror",
	                                    "pthread_create", "pthread_self",   "__errno_location",
	                                    "pthread_detach", "__cxa_finalize", "__register_atfork"};
	uint64_t ignored;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		DP_TRY(dp_sink_symbol(v, names[i], &ignored));
	return NULL;
}

static struct dp_error *no_block(const struct dp_target *t, pid_t tid)
{
	return dp_error(DP_TAG_SINK,
	                "thread %d of process %d (%s) has no control block of its own (raw clone, or not glibc's): LTTng cannot "
	                "run in it",
	                tid, t->process.pid, t->process.comm);
}

/* Stops one thread at a time, for a few microseconds. */
static struct dp_error *check_thread(struct dp_target *t, pid_t tid)
{
	struct dp_held h;
	enum dp_safe_outcome outcome;
	char why[128];
	bool own = true;
	struct dp_priority priority;
	dp_priority_raise(&priority);
	struct dp_error *err = dp_safe_take(NULL, &t->process, tid, &h, &outcome, why);
	if (!err && outcome == DP_SAFE_HELD) {
		own = dp_safe_own_block(&t->process, &h);
		dp_held_release(&h);
	}
	dp_priority_restore(&priority);
	return err || own ? err : no_block(t, tid);
}

static struct dp_error *check_threads(struct dp_target *t)
{
	struct dp_tids tids;
	struct dp_error *err = NULL;
	if (t->launch) {
		const struct dp_held *h = &dp_launch_freeze(t->launch)->thread[0];
		return dp_safe_own_block(&t->process, h) ? NULL : no_block(t, h->tid);
	}
	if (!dp_proc_tids(t->process.pid, &tids))
		return dp_error_nomem();
	for (size_t i = 0; !err && i < tids.n; i++)
		err = check_thread(t, tids.tid[i]);
	free(tids.tid);
	return err;
}

/* Calls in the target for the sink, and parts of a hit, run with all signals blocked: a trap there would kill the process. */
static struct dp_error *check_traps(const struct dp_target *t)
{
	for (size_t i = 0; i < t->nstanding; i++)
		if (t->resident[i]->in.trap)
			return dp_error(DP_TAG_SINK,
			                "process %d (%s) has probes with traps, which cannot be combined with the LTTng sink",
			                t->process.pid, t->process.comm);
	return NULL;
}

struct dp_error *dp_target_sink_check(struct dp_target *t)
{
	dp_auto_view struct dp_sink_view v = {0};
	DP_TRY(check_filter(t));
	DP_TRY(check_traps(t));
	DP_TRY(check_proc(t));
	DP_TRY(dp_sink_view_open(t, &v));
	if (v.data && v.head.state == DP_SINK_FAILED)
		return dp_error(DP_TAG_SINK, "an earlier attempt to load the LTTng sink into process %d (%s) failed: %s",
		                t->process.pid, t->process.comm, v.head.error);
	DP_TRY(check_symbols(&v));
	DP_TRY(dp_sink_refuse_stopped(&v));
	return check_threads(t);
}

/* ---- loading
 * ------------------------------------------------------------------------------------------------------------------- */

/* *refused: the call returned, but no thread was created. */
static struct dp_error *start_thread(struct dp_sink_view *v, uint64_t deadline, bool *refused)
{
	uint64_t create, result = 0;
	DP_TRY(dp_sink_symbol(v, "pthread_create", &create));
	DP_TRY(dp_sink_call_begin(v));
	const uint64_t args[4] = {THREAD_AT(v), 0, v->head.loader, v->data};
	DP_TRY(dp_sink_call_any(v, create, args, deadline, &result));
	*refused = (int)result != 0;
	if (!*refused)
		return NULL;
	return dp_error(DP_TAG_SINK, "pthread_create in process %d (%s) failed: %s", v->process.pid, v->process.comm,
	                strerror((int)result));
}

static struct dp_error *failed(const struct dp_sink_view *v)
{
	return dp_error(DP_TAG_SINK, "the LTTng sink could not be loaded into process %d (%s): %s", v->process.pid,
	                v->process.comm, v->head.error);
}

static struct dp_error *await_ready(struct dp_sink_view *v, uint64_t deadline)
{
	for (;;) {
		DP_TRY(dp_sink_head(v));
		if (v->head.state == DP_SINK_READY)
			return NULL;
		if (v->head.state == DP_SINK_FAILED)
			return failed(v);
		if (dp_now_ns() >= deadline)
			return dp_error(DP_TAG_SINK, "the LTTng sink is still loading in process %d (%s); try again later",
			                v->process.pid, v->process.comm);
		nanosleep(&(struct timespec){0, POLL_NS}, NULL);
		dp_pick_living(v->t);
		v->process.alive = v->t->process.alive;
	}
}

static void fill_entries(const struct dp_sink_view *v, bool fresh, struct dp_sink_entries *ret)
{
	*ret = (struct dp_sink_entries){.sink = v->data,
	                                .enter = v->head.enter,
	                                .emit = v->head.emit,
	                                .emit_capture = v->head.emit_capture,
	                                .prime_hook = v->head.prime_hook,
	                                .ust_present = v->head.flags & DP_SINK_UST_PRESENT,
	                                .fresh = fresh};
}

static bool is_loader(const struct dp_sink_view *v, pid_t tid)
{
	struct dp_buf status;
	bool nested;
	dp_buf_init(&status);
	const bool is = dp_proc_slurp(&status, "/proc/%d/task/%d/status", v->process.pid, tid) &&
	                dp_status_ns_pid(dp_buf_str(&status), &nested) == (pid_t)v->head.loader_tid;
	dp_buf_fini(&status);
	return is;
}

static bool thread_lives(const struct dp_sink_view *v)
{
	struct dp_tids tids;
	bool lives = true;
	if (!v->head.loader_tid || !dp_proc_tids(v->process.pid, &tids))
		return true;
	lives = false;
	for (size_t i = 0; i < tids.n; i++)
		lives |= is_loader(v, tids.tid[i]);
	free(tids.tid);
	return lives;
}

/* Result of load(). */
struct loading {
	bool fresh;   /* nothing had run in the sink before */
	bool mapped;  /* by this run */
	bool refused; /* its thread could not be created */
	bool started; /* its thread was created, and the borrowed thread is back in the program */
};

/* Is no thread in the sink, now or later? */
static bool is_unused(const struct dp_sink_view *v, const struct loading *l)
{
	if (l->refused)
		return v->head.state == DP_SINK_EMPTY;
	return l->started && v->head.state == DP_SINK_FAILED && !(v->head.flags & DP_SINK_LOADED) && !thread_lives(v);
}

/*
 * Undoes a load that failed, so that a later run can try again. Exceptions: the shared object stays once it is loaded, and so do
 * mappings of another tool and those in which a thread of the program may still be.
 */
static void take_back(struct dp_sink_view *v, const struct loading *l)
{
	const uint64_t until = dp_now_ns() + TAKE_BACK_NS;
	if (!v->data || !l->mapped || (!l->refused && !l->started))
		return;
	dp_error_destroy(dp_sink_head(v));
	for (; !is_unused(v, l); nanosleep(&(struct timespec){0, POLL_NS}, NULL))
		if (dp_now_ns() >= until || v->head.state != DP_SINK_FAILED || v->head.flags & DP_SINK_LOADED)
			return;
	dp_error_destroy(dp_sink_unmap(v));
}

static struct dp_error *load(struct dp_sink_view *v, uint64_t limit_ns, struct loading *l)
{
	const uint64_t deadline = dp_now_ns() + limit_ns;
	if (!v->data) {
		DP_TRY(dp_sink_refuse_stopped(v));
		DP_TRY(dp_sink_map(v));
		l->mapped = true;
	}
	l->fresh = v->head.state == DP_SINK_EMPTY;
	if (v->head.state == DP_SINK_FAILED)
		return failed(v);
	if (l->fresh) /* just mapped, or an earlier tool got no further */
		DP_TRY(start_thread(v, deadline, &l->refused));
	l->started = l->fresh;
	return await_ready(v, deadline);
}

struct dp_error *dp_target_sink_load(struct dp_target *t, uint64_t limit_ns, struct dp_sink_entries *ret,
                                     struct dp_sink_stats *stats)
{
	dp_auto_view struct dp_sink_view v = {0};
	const uint64_t begin = dp_now_ns();
	struct loading l = {0};
	DP_TRY(dp_sink_view_open(t, &v));
	struct dp_error *err = load(&v, limit_ns, &l);
	if (v.pause_ns > stats->pause_ns)
		stats->pause_ns = v.pause_ns;
	stats->load_ns = dp_now_ns() - begin;
	if (err)
		take_back(&v, &l);
	if (err)
		return err;
	fill_entries(&v, l.fresh, ret);
	t->sink = ret->sink; /* probes installed from now on emit through it */
	char load[DP_DURATION_TEXT], pause[DP_DURATION_TEXT];
	dp_target_log(t, "LTTng sink %s in %s; a thread was held for at most %s", l.fresh ? "loaded" : "found",
	              dp_duration(stats->load_ns, load), dp_duration(v.pause_ns, pause));
	return NULL;
}

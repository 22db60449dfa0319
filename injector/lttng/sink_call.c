/* SPDX-License-Identifier: MIT */
/* Calls functions in the target: chooses the thread and the time, and never runs two calls on one stack. */
#include "injector/lttng/sink.h"

#include "injector/tracee/proc/proc.h"
#include "injector/tracee/stop/freeze.h"

#include "agent/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALL_NS     UINT64_C(10000000000) /* for one function to return; giving up frees its thread no sooner */
#define COMMAND_NS  UINT64_C(20000000000) /* the same for a command of ours that has not begun */
#define WAITS       2500u                 /* 5 s: then its thread restores itself, and the command begins */
#define EARLIER_NS  UINT64_C(5000000000)  /* for the thread of a killed tool's call to return */
#define REST_NS     2000000L              /* between two rounds over all threads */
#define TIMED_ROUND 1                     /* first round in which a thread in a timed call may be disturbed */
#define ODD_ROUND   20                    /* and one with unusual scheduling */

static void note_pause(struct dp_sink_view *v, const struct dp_held *h)
{
	const uint64_t ns = dp_now_ns() - h->held_at_ns;
	if (ns > v->pause_ns)
		v->pause_ns = ns;
}

/* ---- an earlier call ---------------------------------------------------------------------------------------------------- */

/* The thread of an earlier tool's call, by its tid in its own namespace; 0 if it has ended. */
static pid_t find_ns_tid(const struct dp_sink_view *v, pid_t ns_tid)
{
	struct dp_tids tids;
	pid_t found = 0;
	if (!dp_proc_tids(v->process.pid, &tids))
		return 0;
	for (size_t i = 0; i < tids.n && !found; i++) {
		struct dp_buf status;
		bool nested;
		dp_buf_init(&status);
		if (dp_proc_slurp(&status, "/proc/%d/task/%d/status", v->process.pid, tids.tid[i]) &&
		    dp_status_ns_pid(dp_buf_str(&status), &nested) == ns_tid)
			found = tids.tid[i];
		dp_buf_fini(&status);
	}
	free(tids.tid);
	return found;
}

/* *home: the thread of an earlier call has returned, so nothing of ours is on its stack (the sink's text is banned). */
static struct dp_error *settle(struct dp_sink_view *v, pid_t ns_tid, bool *home)
{
	struct dp_held h;
	enum dp_safe_outcome outcome = DP_SAFE_GONE;
	char why[128];
	const pid_t tid = find_ns_tid(v, ns_tid);
	if (tid)
		DP_TRY(dp_safe_take(v->safe, &v->process, tid, &h, &outcome, why));
	*home = outcome == DP_SAFE_HELD || outcome == DP_SAFE_GONE;
	if (*home) {
		const uint32_t idle = DP_CALL_IDLE;
		dp_error_destroy(dp_mem_write(&v->process, dp_addr_of(v->site.frame + DP_CALL_STATE), &idle, sizeof(idle)));
	}
	if (outcome == DP_SAFE_HELD)
		dp_held_release(&h);
	return NULL;
}

static struct dp_error *await_earlier(struct dp_sink_view *v)
{
	const uint64_t deadline = dp_now_ns() + EARLIER_NS;
	pid_t ns_tid = 0;
	bool home = false;
	while (!dp_call_over(&v->process, &v->site, &ns_tid)) {
		DP_TRY(settle(v, ns_tid, &home));
		if (home)
			return NULL;
		if (dp_now_ns() >= deadline)
			return dp_error(DP_TAG_SINK,
			                "an earlier call of dynprobe on thread %d of process %d (%s) has not returned", ns_tid,
			                v->process.pid, v->process.comm);
		nanosleep(&(struct timespec){0, REST_NS}, NULL);
	}
	return NULL;
}

struct dp_error *dp_sink_call_begin(struct dp_sink_view *v)
{
	v->site = (struct dp_call_site){.entry = v->head.call,
	                                .frame = v->head.call + DP_CALL_DISTANCE,
	                                .stack = v->data + v->head.stack_offset + v->head.stack_size};
	DP_TRY(dp_sink_symbol(v, "__errno_location", &v->site.errno_location));
	dp_safe_destroy(v->safe);
	v->safe = NULL;
	DP_TRY(dp_safe_create(v->image, v->head.text, v->head.text_size, &v->safe));
	return await_earlier(v);
}

/* ---- one thread --------------------------------------------------------------------------------------------------------------
 */

static struct dp_error *call_held(struct dp_sink_view *v, struct dp_held *h, uint64_t fn, const uint64_t args[4],
                                  uint64_t *result)
{
	struct dp_process p = v->process;
	p.alive = h->tid;
	return dp_call(&p, h, &v->site, fn, args, CALL_NS, result);
}

/* Nobody waits for a command that has not begun, so its thread can wait long for a tool that gets no processor. */
static struct dp_error *call_command(struct dp_sink_view *v, struct dp_held *h, uint64_t fn, const uint64_t args[4],
                                     uint64_t *result)
{
	struct dp_process p = v->process;
	struct dp_call_site site = v->site;
	site.waits = WAITS;
	p.alive = h->tid;
	return dp_call(&p, h, &site, fn, args, COMMAND_NS, result);
}

/* The thread of a launched command is held all the time. */
static struct dp_error *call_launched(struct dp_sink_view *v, uint64_t fn, const uint64_t args[4], uint64_t *result)
{
	struct dp_held *h = &dp_launch_freeze(v->t->launch)->thread[0];
	char why[128] = "";
	if (!dp_safe_here(v->safe, &v->process, h, why))
		return dp_error(DP_TAG_SINK, "the command (%s) cannot run a call for dynprobe: %s", v->process.comm, why);
	return dp_launch_is_adopted(v->t->launch) ? call_held(v, h, fn, args, result) : call_command(v, h, fn, args, result);
}

static struct dp_error *take_and_call(struct dp_sink_view *v, pid_t tid, uint64_t fn, const uint64_t args[4], uint64_t *result,
                                      enum dp_safe_outcome *outcome, char why[128])
{
	struct dp_held h = {0};
	DP_TRY(dp_safe_take(v->safe, &v->process, tid, &h, outcome, why));
	if (*outcome != DP_SAFE_HELD) {
		if (h.held_at_ns)
			note_pause(v, &h);
		return NULL;
	}
	struct dp_error *err = call_held(v, &h, fn, args, result);
	dp_held_release(&h);
	note_pause(v, &h);
	return err;
}

/* Raises the priority before the stop, because the thread waits for us from then on. */
static struct dp_error *call_running(struct dp_sink_view *v, pid_t tid, uint64_t fn, const uint64_t args[4], uint64_t *result,
                                     enum dp_safe_outcome *outcome, char why[128])
{
	struct dp_priority priority;
	/* or one of this tool: a thread that we could not get back returns by itself, using the frame */
	DP_TRY(await_earlier(v));
	dp_priority_raise(&priority);
	struct dp_error *err = take_and_call(v, tid, fn, args, result, outcome, why);
	dp_priority_restore(&priority);
	return err;
}

struct dp_error *dp_sink_call_one(struct dp_sink_view *v, pid_t tid, uint64_t fn, enum dp_safe_outcome *outcome, char why[128])
{
	static const uint64_t none[4];
	uint64_t ignored;
	if (!v->t->launch)
		return call_running(v, tid, fn, none, &ignored, outcome, why);
	*outcome = DP_SAFE_HELD;
	return call_launched(v, fn, none, &ignored);
}

/* ---- any thread ---------------------------------------------------------------------------------------------------------- */

struct search {
	uint64_t fn;
	const uint64_t *args;
	uint64_t *result;
	unsigned round;
	bool done;
	char why[128];
	pid_t last;
};

static struct dp_error *try_rank(struct dp_sink_view *v, const struct dp_tids *tids, enum dp_safe_rank rank, struct search *s)
{
	for (size_t i = 0; i < tids->n && !s->done; i++) {
		enum dp_safe_outcome outcome;
		if (dp_safe_rank(v->safe, &v->process, tids->tid[i]) != rank)
			continue;
		s->last = tids->tid[i];
		DP_TRY(call_running(v, tids->tid[i], s->fn, s->args, s->result, &outcome, s->why));
		s->done = outcome == DP_SAFE_HELD;
		if (outcome == DP_SAFE_STOPPED_JOB)
			return dp_error(DP_TAG_SINK, "process %d (%s) is stopped; continue it first (kill -CONT %d)",
			                v->process.pid, v->process.comm, v->process.pid);
	}
	return NULL;
}

static struct dp_error *one_round(struct dp_sink_view *v, struct search *s)
{
	struct dp_tids tids;
	struct dp_error *err = NULL;
	if (!dp_proc_tids(v->process.pid, &tids))
		return dp_error_nomem();
	if (!tids.n)
		err = dp_error(DP_TAG_GONE, "process %d (%s) ended", v->process.pid, v->process.comm);
	for (int rank = DP_SAFE_BEST; !err && !s->done && rank < DP_SAFE_NEVER; rank++)
		if ((rank != DP_SAFE_TIMED || s->round >= TIMED_ROUND) && (rank != DP_SAFE_ODD || s->round >= ODD_ROUND))
			err = try_rank(v, &tids, (enum dp_safe_rank)rank, s);
	free(tids.tid);
	return err;
}

struct dp_error *dp_sink_call_any(struct dp_sink_view *v, uint64_t fn, const uint64_t args[4], uint64_t deadline,
                                  uint64_t *result)
{
	struct search s = {.fn = fn, .args = args, .result = result, .why = "no thread was seen"};
	if (v->t->launch)
		return call_launched(v, fn, args, result);
	for (;; s.round++) {
		DP_TRY(one_round(v, &s));
		if (s.done)
			return NULL;
		if (dp_now_ns() >= deadline)
			return dp_error(DP_TAG_NO_THREAD,
			                "no thread of process %d (%s) reached a point where it can run our call; thread %d: %s",
			                v->process.pid, v->process.comm, s.last, s.why);
		nanosleep(&(struct timespec){0, REST_NS}, NULL);
	}
}

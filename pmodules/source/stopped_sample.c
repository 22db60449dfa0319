/* SPDX-License-Identifier: MIT */
/*
 * Samples the registers of running threads, for the prefetch. A few threads are stopped together, so that each reaches its stop
 * while others are read. All resume before the samples are used: no thread is stopped for longer than a few threads take.
 */
#include "pmodules/source/stopped_internal.h"

#include "injector/tracee/stop/eintr.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"
#include "injector/tracee/proc/proc.h"

#include <stdlib.h>
#include <sys/ptrace.h>

#define TOGETHER 8u
#define CODE64   0x33
#define TURN_NS  UINT64_C(100000)
#define STOP_NS  UINT64_C(100000000) /* a busy machine must first schedule it; nothing waits meanwhile */

struct glimpse {
	struct dp_held held;
	struct dp_stopped_thread thread;
	bool asked, seen;
};

/* Skips threads in calls whose timeout would restart: the hold will do that once, which is enough. */
static bool is_left_alone(pid_t pid, pid_t tid)
{
	struct dp_task_stat stat;
	long nr;
	uint64_t args[6];
	if (!dp_proc_stat(pid, tid, &stat) || stat.state == 'D' ||
	    dp_task_is_worker(&stat)) /* D: it could neither stop nor be released */
		return true;
	return dp_proc_syscall(pid, tid, &nr, args) && nr >= 0 && dp_eintr_class(nr, args) == DP_EINTR_TIMED;
}

static struct dp_error *ask(const struct dp_process *p, pid_t tid, struct glimpse *g)
{
	bool gone = false;
	*g = (struct glimpse){.held = {.tid = tid}, .thread = {.tid = tid, .state = '?', .syscall = -1}};
	if (is_left_alone(p->pid, tid))
		return NULL;
	struct dp_error *err = dp_held_seize(p, tid, &gone);
	if (err && (err->tag == DP_TAG_UNSTOPPABLE || err->tag == DP_TAG_TRACED || err->tag == DP_TAG_GONE)) {
		dp_error_destroy(err);
		return NULL;
	}
	if (err || gone)
		return err;
	g->held.seized = g->asked = true;
	g->held.held_at_ns = dp_now_ns();
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return NULL;
}

/* Reads the thread and releases it, if it has stopped; false: not stopped yet, try again. */
static bool look(struct glimpse *g)
{
	struct dp_held *h = &g->held;
	const uint64_t last = h->held_at_ns + STOP_NS, soon = dp_now_ns() + TURN_NS;
	const struct dp_stop stop = dp_stop_wait(h->tid, soon < last ? soon : last);
	if (stop.kind == DP_STOP_NONE && dp_now_ns() < last)
		return false;
	if (stop.kind != DP_STOP_NONE && dp_held_take(h, stop) && stop.kind != DP_STOP_EXEC) {
		g->seen = !h->group_stopped && !h->pending_signal && h->regs.cs == CODE64;
		if (g->seen)
			dp_stopped_registers(h, &g->thread);
	}
	dp_held_release(h);
	return true;
}

/* All threads are released when this returns. */
static struct dp_error *stop_some(const struct dp_process *p, const pid_t *tid, size_t n, struct glimpse *g)
{
	struct dp_error *err = NULL;
	size_t asked = 0;
	while (asked < n && !err) {
		err = ask(p, tid[asked], &g[asked]);
		asked++;
	}
	/* A slow thread must not delay the others. */
	for (size_t left = asked; left;) {
		left = 0;
		for (size_t i = 0; i < asked; i++) {
			g[i].asked = g[i].asked && !look(&g[i]);
			left += g[i].asked;
		}
	}
	return err;
}

struct dp_error *dp_stopped_sample(struct dp_stopped *s, void (*each)(const struct dp_stopped_thread *t, void *data), void *data)
{
	struct dp_error *err = NULL;
	struct dp_tids tids;
	if (s->core)
		return NULL;
	if (!dp_proc_tids(s->target.process.pid, &tids))
		return dp_error_nomem();
	for (size_t i = 0; i < tids.n && !err; i += TOGETHER) {
		struct glimpse g[TOGETHER];
		const size_t n = tids.n - i < TOGETHER ? tids.n - i : TOGETHER;
		dp_watchdog_start("some threads of the program");
		dp_priority_raise(&s->priority); /* stopped threads wait for us, and a busy machine has other work */
		err = stop_some(&s->target.process, tids.tid + i, n, g);
		dp_priority_restore(&s->priority);
		/* Only now: earlier, stopped threads would wait for those that do not stop. */
		if (dp_late_stop_is_left())
			dp_late_stop_settle(DP_SETTLE_NS);
		dp_watchdog_stop();
		for (size_t k = 0; k < n && !err; k++)
			if (g[k].seen)
				each(&g[k].thread, data);
	}
	free(tids.tid);
	return err;
}

/* SPDX-License-Identifier: MIT */
/*
 * The registers of running threads, for the rehearsal. A few threads are stopped side by side, so that each comes to stand while
 * others are looked at, and go on before anything is done with what was seen: none stands longer than a few need.
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
#define STOP_NS  UINT64_C(100000000) /* on a busy machine it first needs a processor; nothing waits for us until it stands */

struct glimpse {
	struct dp_held held;
	struct dp_stopped_thread thread;
	bool asked, seen;
};

/* One in a call whose timeout would begin anew is left in peace: the hold will do that once, and once is enough. */
static bool is_left_alone(pid_t pid, pid_t tid)
{
	struct dp_task_stat stat;
	long nr;
	uint64_t args[6];
	if (!dp_proc_stat(pid, tid, &stat) || stat.state == 'D' ||
	    dp_task_is_worker(&stat)) /* D: could neither stop nor be let go */
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

/* Once it stands it goes on; false: it does not yet stand, and may still. */
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

/* All go on when it returns. */
static struct dp_error *stop_some(const struct dp_process *p, const pid_t *tid, size_t n, struct glimpse *g)
{
	struct dp_error *err = NULL;
	size_t asked = 0;
	while (asked < n && !err) {
		err = ask(p, tid[asked], &g[asked]);
		asked++;
	}
	/* One that is slow must not keep the others. */
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
		return dp_error(DP_TAG_NOMEM, "listing the threads of process %d", s->target.process.pid);
	for (size_t i = 0; i < tids.n && !err; i += TOGETHER) {
		struct glimpse g[TOGETHER];
		const size_t n = tids.n - i < TOGETHER ? tids.n - i : TOGETHER;
		dp_watchdog_start();
		dp_priority_raise(&s->priority); /* who stands waits for us, who are one of many on a busy machine */
		err = stop_some(&s->target.process, tids.tid + i, n, g);
		dp_priority_restore(&s->priority);
		/* Not earlier: until all have been seen to, others that stand would wait for those that do not. */
		if (dp_stray_is_left())
			dp_stray_settle(DP_SETTLE_NS);
		dp_watchdog_stop();
		for (size_t k = 0; k < n && !err; k++)
			if (g[k].seen)
				each(&g[k].thread, data);
	}
	free(tids.tid);
	return err;
}

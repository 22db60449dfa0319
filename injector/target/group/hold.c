/* SPDX-License-Identifier: MIT */
/*
 * Checks to repeat at each stop: since the last one threads may have ended, and the program may have called exec or installed a
 * seccomp filter.
 */
#include "injector/target/group/group.h"
#include "injector/tracee/borrow/dispatch.h"
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/proc/sharers.h"

#include <stdlib.h>
#include <string.h>

static struct dp_error *gone(const struct dp_target *t)
{
	return dp_error(DP_TAG_GONE, "process %d (%s) called exec or unmapped dynprobe's memory", t->process.pid,
	                t->process.comm);
}

struct dp_error *dp_stopped_holds(struct dp_target *t, const struct dp_installation *in)
{
	uint64_t live = 0;
	const dp_addr at = dp_addr_of(in->private.addr);
	if (!in->private.mapped)
		return NULL;
	/* The thread that we read through may have ended while the process lives on. */
	if (dp_mem_read(&t->process, at, &live, sizeof(live)) != sizeof(live) &&
	    (!dp_pick_living(t) || dp_mem_read(&t->process, at, &live, sizeof(live)) != sizeof(live)))
		return gone(t);
	/* Before it is filled it is zero, as in a fork child. */
	return live == DP_LIVE || !in->live ? NULL : gone(t);
}

struct dp_error *dp_stopped_ours(struct dp_target *t)
{
	return dp_stopped_holds(t, &t->in);
}

bool dp_pick_living(struct dp_target *t)
{
	struct dp_tids tids;
	bool found = false;
	if (!dp_proc_tids(t->process.pid, &tids))
		return false;
	for (size_t i = 0; i < tids.n && !found; i++) {
		struct dp_task_stat stat;
		found = dp_proc_stat(t->process.pid, tids.tid[i], &stat) && stat.state != 'Z' && stat.state != 'X' &&
		        !dp_task_is_worker(&stat);
		if (found)
			t->process.alive = tids.tid[i];
	}
	free(tids.tid);
	return found;
}

static bool lives(const struct dp_process *p)
{
	struct dp_task_stat stat;
	return dp_proc_stat(p->pid, p->alive, &stat) && stat.state != 'Z' && stat.state != 'X';
}

/* Is the thread, which we hold, under a filter that may refuse our calls? One that came since the checks is evaluated now. */
static bool under_filter(const struct dp_process *p, pid_t tid)
{
	struct dp_filter_verdict verdict = {0};
	struct dp_buf status;
	dp_buf_init(&status);
	const bool is_new =
	        dp_proc_slurp(&status, "/proc/%d/task/%d/status", p->pid, tid) && dp_filter_is_new(p, dp_buf_str(&status));
	dp_buf_fini(&status);
	if (!is_new)
		return false;
	dp_filter_judge(tid, &verdict);
	return verdict.unreadable || verdict.forbids[DP_CALLS_ATTACH][0];
}

struct dp_error *dp_refuse_shadow_stack(const struct dp_target *t)
{
	return t->process.shadow_stack ? dp_error(DP_TAG_SHADOW_STACK, "process %d (%s) runs with a user shadow stack",
	                                          t->process.pid, t->process.comm)
	                               : NULL;
}

const char *dp_not_live(const struct dp_target *t)
{
	if (t->launch)
		return "the command has not started yet";
	return t->process.seccomp ? "it is under a seccomp filter" : NULL;
}

struct dp_error *dp_borrow_one(struct dp_target *t, uint64_t limit_ns, struct dp_borrow **ret)
{
	struct dp_borrow *b = NULL;
	if (t->process.seccomp)
		return dp_error(DP_TAG_NO_THREAD, "process %d (%s) is under a seccomp filter", t->process.pid, t->process.comm);
	DP_TRY(dp_borrow_begin(&t->process, NULL, limit_ns, false, &b));
	if (!lives(&t->process)) /* a borrowed thread may end sooner than the first one */
		t->process.alive = dp_borrow_tid(b);
	if (!under_filter(&t->process, dp_borrow_tid(b))) {
		*ret = b;
		return NULL;
	}
	dp_error_destroy(dp_borrow_end(b, NULL));
	return dp_error(DP_TAG_NO_THREAD, "process %d (%s) has installed a seccomp filter", t->process.pid, t->process.comm);
}

struct dp_error *dp_borrow_held(struct dp_target *t, struct dp_freeze *f, struct dp_borrow **ret)
{
	struct dp_borrow *b = NULL;
	DP_TRY(dp_borrow_begin(&t->process, f, DP_FREEZE_LIMIT_NS, t->process.seccomp, &b));
	/* Filters belong to threads, and this thread may have got one since the last check. It has made no call for us yet. */
	const bool caged = !t->process.seccomp && under_filter(&t->process, dp_borrow_tid(b));
	if (!caged) {
		*ret = b;
		return NULL;
	}
	dp_error_destroy(dp_borrow_end(b, NULL));
	t->process.seccomp = t->process.filtered = true;
	t->process.judged = false;
	if (t->options.allow_seccomp)
		return dp_borrow_begin(&t->process, f, DP_FREEZE_LIMIT_NS, true, ret);
	return dp_error(DP_TAG_SECCOMP, "process %d (%s) has installed a seccomp filter", t->process.pid, t->process.comm);
}

/* ---- system calls that go to the program (dispatch.h) ----------------------------------------------------------------- */

#define ROUNDS 16

struct looked_for {
	struct dp_for_each_stopped each;
	const struct dp_process *p;
	pid_t found;
};

static bool look(struct dp_freeze *one, void *data)
{
	struct looked_for *l = data;
	const pid_t tid = one->thread[0].tid;
	if (dp_dispatch_of(l->p, tid, NULL, NULL) != DP_DISPATCH_NONE)
		l->found = tid;
	l->each.enough = l->found;
	return true;
}

struct dp_error *dp_dispatch_check(struct dp_target *t)
{
	struct looked_for l = {.p = &t->process};
	struct dp_error *err = NULL;
	bool ignored;
	if (t->launch || !dp_dispatch_possible(&t->process, t->process.alive)) /* exec turns dispatch off */
		return NULL;
	for (int round = 0; !err && !l.found && !l.each.met_all && round < ROUNDS; round++)
		err = dp_for_each_stopped_round(t, &l.each, look, &l, &ignored);
	dp_for_each_stopped_fini(&l.each);
	if (err)
		return err;
	return l.found ? dp_dispatch_refused(&t->process, l.found) : NULL;
}

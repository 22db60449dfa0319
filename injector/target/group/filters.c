/* SPDX-License-Identifier: MIT */
/*
 * May the process make dynprobe's system calls? A filter belongs to a thread, and only a tracer that holds the thread can read
 * it. So each thread is stopped once, alone and briefly, as for the other checks of threads.
 */
#include "injector/target/group/group.h"
#include "injector/tracee/proc/checks.h"
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/proc.h"

#include <errno.h>
#include <limits.h>

#define ROUNDS 16

struct filters {
	struct dp_for_each_stopped each;
	pid_t pid;
	struct dp_filter_verdict all;
	unsigned least, most; /* filters of a thread */
};

static unsigned count_of(pid_t pid, pid_t tid)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const unsigned n = dp_proc_slurp(&status, "/proc/%d/task/%d/status", pid, tid) ? dp_filter_count(dp_buf_str(&status)) : 0;
	dp_buf_fini(&status);
	return n;
}

static bool judge(struct dp_freeze *one, void *data)
{
	struct filters *f = data;
	const pid_t tid = one->thread[0].tid;
	const unsigned n = count_of(f->pid, tid);
	if (n)
		dp_filter_judge(tid, &f->all);
	f->least = n < f->least ? n : f->least;
	f->most = n > f->most ? n : f->most;
	f->each.enough = f->all.unreadable;
	return true;
}

static struct dp_error *judge_all(struct dp_target *t, struct filters *f)
{
	struct dp_error *err = NULL;
	bool ignored;
	for (int round = 0; !err && !f->each.enough && !f->each.met_all && round < ROUNDS; round++)
		err = dp_for_each_stopped_round(t, &f->each, judge, f, &ignored);
	if (!f->each.met_all) /* a thread that cannot be stopped now: its filters are not known */
		f->all.unreadable = f->all.unreadable ? f->all.unreadable : EAGAIN;
	dp_for_each_stopped_fini(&f->each);
	return err;
}

/* No thread may be stopped, so an attach decides. Who would suspend the filter expects it to forbid something. */
static struct dp_error *assume(struct dp_target *t)
{
	struct dp_process *p = &t->process;
	dp_target_log(t, "process %d (%s) is under a seccomp filter, which is read at an attach", p->pid, p->comm);
	if (!p->seccomp_strict && !t->options.allow_seccomp)
		dp_filter_take(p, &(struct dp_filter_verdict){0});
	return p->seccomp ? dp_check_seccomp(p, t->options.allow_seccomp) : NULL;
}

struct dp_error *dp_filters_check(struct dp_target *t)
{
	struct dp_process *p = &t->process;
	struct filters f = {.pid = p->pid, .least = UINT_MAX};
	if (!p->filtered || !dp_filter_readable())
		return NULL; /* dp_process_check() has decided */
	if (t->options.look)
		return assume(t);
	if (t->launch)
		dp_filter_judge(p->pid, &f.all);
	else if (!p->seccomp_strict)
		DP_TRY(judge_all(t, &f));
	dp_filter_take(p, &f.all);
	p->filters = f.least == f.most ? f.most : 0;
	if (p->seccomp)
		dp_target_log(t, "seccomp: %s", dp_filter_forbids(p, DP_CALLS_ATTACH));
	return p->seccomp ? dp_check_seccomp(p, t->options.allow_seccomp) : NULL;
}

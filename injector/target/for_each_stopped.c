/* SPDX-License-Identifier: MIT */
/*
 * Stops threads one after the other, each alone.
 *
 * While threads come and go, a listing may be incomplete: it may end early if the thread it has reached ends. The link count of
 * /proc/PID/task is the number of threads + 2; only a listing of that length counts. A thread that is done, known by its tid and
 * start time, stays done. The caller must make sure that only a thread that is not done can change that. Then threads that start
 * later are done too, because a done thread started them.
 */
#include "injector/target/target.h"
#include "injector/tracee/stop/asleep.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"
#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

/* on a busy machine a thread first needs a processor; no other thread waits for us meanwhile */
#define STOP_NS UINT64_C(1000000000)
#define LISTS   8
#define PATIENT 4 /* rounds in which a running thread with children is left alone: see eintr.c */

/* Lists all threads; false if they come and go too fast. */
static bool list(const struct dp_target *t, int task_dir, struct dp_tids *tids)
{
	for (int i = 0; i < LISTS; i++) {
		struct stat before, after;
		const bool counted = !fstat(task_dir, &before);
		if (!dp_proc_tids(t->process.pid, tids))
			return false;
		/* Before too: a thread that ends meanwhile leaves the count, and cuts later ones off the list. */
		if (counted && !fstat(task_dir, &after) && before.st_nlink == 2 + tids->n && after.st_nlink == 2 + tids->n)
			return true;
		free(tids->tid);
	}
	*tids = (struct dp_tids){0};
	return dp_proc_tids(t->process.pid, tids) && false;
}

static pid_t ns_tid_of(const struct dp_target *t, pid_t tid)
{
	struct dp_buf status;
	bool nested;
	pid_t ns_tid = tid;
	if (!t->process.nested)
		return tid;
	dp_buf_init(&status);
	if (dp_proc_slurp(&status, "/proc/%d/task/%d/status", t->process.pid, tid))
		ns_tid = dp_status_ns_pid(dp_buf_str(&status), &nested);
	dp_buf_fini(&status);
	return ns_tid;
}

/* *stands is false if the thread did not stop (yet); then it runs on undisturbed. */
static struct dp_error *stop(struct dp_target *t, struct dp_held *h, bool *stands)
{
	bool gone;
	*stands = false;
	struct dp_error *err = dp_held_seize(&t->process, h->tid, &gone);
	if (err && (err->tag == DP_TAG_UNSTOPPABLE || err->tag == DP_TAG_VFORK)) {
		/* Still seized from an earlier round, in which it did not stop. */
		dp_late_stop_settle(STOP_NS);
		return dp_error_destroy(err);
	}
	if (err || gone)
		return err;
	h->seized = true;
	h->held_at_ns = dp_now_ns();
	ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL);
	const struct dp_stop at = dp_stop_wait(h->tid, h->held_at_ns + STOP_NS);
	*stands = at.kind != DP_STOP_NONE && dp_held_take(h, at) && at.kind != DP_STOP_EXEC;
	if (!*stands) {
		dp_held_release(h);
		dp_late_stop_settle(STOP_NS);
	}
	return NULL;
}

struct met { /* one thread of a listing that is not done */
	pid_t tid;
	struct dp_task_stat stat;
	dp_for_each_stopped_fn look;
	void *data;
};

static struct dp_error *visit_hurried(struct dp_target *t, struct dp_for_each_stopped *e, const struct met *m)
{
	struct dp_held h = {.tid = m->tid, .ns_tid = ns_tid_of(t, m->tid), .pid = t->process.pid};
	struct dp_freeze one = {.thread = &h, .n = 1};
	struct dp_task_stat stat;
	bool stands;
	dp_watchdog_start("a thread of the program");
	struct dp_error *err = stop(t, &h, &stands);
	if (err || !stands) {
		dp_watchdog_stop();
		return err;
	}
	const bool same = dp_proc_stat(t->process.pid, m->tid, &stat) && stat.start_time == m->stat.start_time;
	const bool done = same && m->look(&one, m->data);
	const uint64_t from = h.held_at_ns;
	dp_held_release(&h);
	dp_watchdog_stop();
	const uint64_t held = dp_now_ns() - from;
	if (held > e->held_ns)
		e->held_ns = held;
	return done ? dp_seen_add(&e->done, m->tid, m->stat.start_time) : NULL;
}

/* Raises the priority for one thread's hold, not for a round: on a single processor no other process runs meanwhile. */
static struct dp_error *visit(struct dp_target *t, struct dp_for_each_stopped *e, const struct met *m)
{
	struct dp_priority priority;
	dp_priority_raise(&priority);
	struct dp_error *err = visit_hurried(t, e, m);
	dp_priority_restore(&priority);
	return err;
}

/*
 * Is it done without being stopped? If its tid has been reused meanwhile, the entry made is for the thread that has gone, and the
 * next round meets the new one.
 */
static bool is_done_asleep(const struct dp_target *t, const struct dp_for_each_stopped *e, const struct met *m)
{
	struct dp_asleep at;
	if (!e->asleep || m->stat.state != 'S' || !dp_asleep_take(t->process.pid, m->tid, &at))
		return false;
	const struct dp_held h = {.tid = m->tid, .regs = {.rip = at.pc, .rsp = at.sp}};
	return e->asleep(&h, m->data) && dp_asleep_still(t->process.pid, m->tid, &at);
}

static struct dp_error *meet(struct dp_target *t, struct dp_for_each_stopped *e, const struct met *m)
{
	if (dp_task_is_worker(&m->stat)) /* stopping it would end one of the program's requests */
		return dp_seen_add(&e->done, m->tid, m->stat.start_time);
	if (m->stat.state == 'D') /* it would not stop, and could not be released */
		return NULL;
	if (m->stat.state == 'Z' || m->stat.state == 'X' || is_done_asleep(t, e, m))
		return dp_seen_add(&e->done, m->tid, m->stat.start_time);
	if (e->asleep && e->listed > 1 && e->rounds <= PATIENT && dp_proc_has_children(t->process.pid, m->tid))
		return NULL;
	return visit(t, e, m);
}

struct dp_error *dp_for_each_stopped_round(struct dp_target *t, struct dp_for_each_stopped *e, dp_for_each_stopped_fn look, void *data, bool *all)
{
	char path[64];
	struct dp_tids tids;
	struct dp_error *err = NULL;
	snprintf(path, sizeof(path), "/proc/%d/task", t->process.pid);
	dp_auto_close int task_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dp_late_stop_reap();
	e->rounds++;
	if (task_dir < 0 || dp_process_start_time(t->process.pid) != t->process.start_time)
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", t->process.pid, t->process.comm);
	*all = e->met_all = list(t, task_dir, &tids);
	e->listed = tids.n;
	for (size_t i = 0; !err && !e->enough && i < tids.n; i++) {
		struct met m = {.tid = tids.tid[i], .look = look, .data = data};
		const bool there = dp_proc_stat(t->process.pid, m.tid, &m.stat);
		if (there ? dp_seen_has(e->done, m.tid, m.stat.start_time) : dp_seen_id(e->done, m.tid))
			continue;
		*all = false; /* even if it has ended: threads that it started meanwhile are not listed */
		err = there ? meet(t, e, &m) : NULL;
		e->met_all &= !there || dp_seen_has(e->done, m.tid, m.stat.start_time);
	}
	free(tids.tid);
	return err;
}

void dp_for_each_stopped_fini(struct dp_for_each_stopped *e)
{
	dp_seen_fini(&e->done);
	*e = (struct dp_for_each_stopped){0};
}

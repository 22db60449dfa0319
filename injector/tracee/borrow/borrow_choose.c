/* SPDX-License-Identifier: MIT */
/*
 * Chooses the thread to borrow: one that is not disturbed. Best is one blocked in a call that the kernel restarts; then a running
 * one; then one in a call whose -EINTR we turn into a restart. One in such a call with a timeout, which would begin anew, is not
 * stopped for this; in a freeze it is stopped like all others, and may serve if no other can. While a thread that signals are
 * sent to is borrowed, signals that the process ignores go to others (eintr.c). A thread in uninterruptible sleep is not asked to
 * stop: it would not, and could not be released.
 */
#include "injector/tracee/borrow/boot.h"
#include "injector/tracee/borrow/borrow.h"
#include "injector/tracee/borrow/dispatch.h"
#include "injector/tracee/stop/eintr.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/proc/proc.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CODE64 0x33 /* cs of 64-bit code */

/*
 * DISPATCHED: only with all threads held. LEADER: blocked, and signals to the process go to it. PARENT: children's signals go to
 * it.
 */
enum rank { BLOCKED, LEADER, RUNNING, MENDED, PARENT, MAYBE_TIMED, TIMED, SIGNALLED, DISPATCHED, UNFIT };
#define FURTHER 16 /* more threads to inspect if only the leader is blocked */

/* ---- in a freeze -------------------------------------------------------------------------------------------------------- */

static bool in_restart(const struct user_regs_struct *r)
{
	int64_t rax = (int64_t)r->rax;
	return (int64_t)r->orig_rax >= 0 && rax <= -512 && rax >= -516;
}

/*
 * Has the thread a descriptor table of its own (as LTTng's listeners, if our sink brought them)? The next borrowed thread would
 * not find a descriptor that it opens, or find another file.
 */
static bool has_own_files(const struct dp_process *p, pid_t tid)
{
	return tid != p->alive && syscall(SYS_kcmp, p->alive, tid, KCMP_FILES, 0, 0) > 0;
}

/*
 * A thread that restores itself after a tool was just killed is left alone: borrowed again, and its second tool killed as well,
 * it would return to code that may have been overwritten by then.
 */
static enum rank rank_held(const struct dp_process *p, const struct dp_held *h)
{
	if (!h->stopped || h->exited || h->regs.cs != CODE64 || dp_boot_leftover_at(p, h->regs.rip) || has_own_files(p, h->tid))
		return UNFIT;
	const enum dp_dispatch dispatch = dp_dispatch_of(p, h->tid, NULL, NULL);
	if (dispatch != DP_DISPATCH_NONE)
		return dispatch == DP_DISPATCH_ALL || h->pending_signal ? UNFIT : DISPATCHED;
	if (dp_eintr_timed(&h->regs))
		return TIMED;
	if (h->pending_signal)
		return SIGNALLED;
	if (dp_eintr_mended(&h->regs))
		return MENDED;
	return in_restart(&h->regs) ? BLOCKED : RUNNING;
}

/*
 * For a thread at a signal's delivery: delivers the signal and, by the pending interrupt, stops the thread again at the handler's
 * first instruction. False if it did not get there.
 */
static bool deliver(const struct dp_process *p, struct dp_held *h, uint64_t deadline)
{
	while (h->pending_signal) {
		ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL);
		if (ptrace(PTRACE_CONT, h->tid, NULL, (void *)(long)h->pending_signal) != 0)
			return false;
		h->stopped = false;
		struct dp_stop stop = dp_stop_wait(h->tid, deadline);
		if (stop.kind == DP_STOP_NONE || stop.kind == DP_STOP_EXEC || !dp_held_take(h, stop))
			return false;
	}
	return rank_held(p, h) != UNFIT;
}

static struct dp_error *no_thread(const struct dp_process *p)
{
	return dp_error(DP_TAG_NO_THREAD, "no thread of process %d (%s) can be borrowed", p->pid, p->comm);
}

static struct dp_error *none_frozen(const struct dp_process *p, const struct dp_freeze *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->thread[i].stopped && dp_dispatch_of(p, f->thread[i].tid, NULL, NULL) != DP_DISPATCH_NONE)
			return dp_dispatch_refused(p, f->thread[i].tid);
	return no_thread(p);
}

struct dp_error *dp_choose_frozen(const struct dp_process *p, struct dp_freeze *f, struct dp_held **ret)
{
	enum rank best = UNFIT;
	struct dp_held *choice = NULL;
	for (size_t i = 0; i < f->n && best != BLOCKED; i++) {
		enum rank r = rank_held(p, &f->thread[i]);
		if (r < best) {
			best = r;
			choice = &f->thread[i];
		}
	}
	if (!choice)
		return none_frozen(p, f);
	if (best == SIGNALLED && !deliver(p, choice, dp_now_ns() + 2000000))
		return no_thread(p);
	*ret = choice;
	return NULL;
}

/* ---- among running threads ---------------------------------------------------------------------------------------------- */

struct candidate {
	pid_t tid;
	enum rank rank;
	bool asleep; /* in uninterruptible sleep */
};

static enum rank rank_blocked(pid_t pid, pid_t tid)
{
	long nr;
	uint64_t args[6];
	if (!dp_proc_syscall(pid, tid, &nr, args) || nr < 0)
		return RUNNING;
	switch (dp_eintr_class(nr, args)) {
	case DP_EINTR_NEVER:
		return BLOCKED;
	case DP_EINTR_PLAIN:
		return MENDED;
	case DP_EINTR_SOCKET: /* only a stop tells whether its socket has a timeout */
		return MAYBE_TIMED;
	default:
		return UNFIT;
	}
}

/* Demotes threads that signals are sent to, if the process has other threads. */
static enum rank rank_addressed(const struct dp_process *p, pid_t tid, enum rank rank)
{
	if (rank <= MENDED && dp_proc_has_children(p->pid, tid))
		return PARENT;
	return rank == BLOCKED && tid == p->pid ? LEADER : rank;
}

static struct candidate look_at(const struct dp_process *p, pid_t tid, bool alone)
{
	struct dp_task_stat stat;
	struct candidate c = {.tid = tid, .rank = UNFIT};
	if (!dp_proc_stat(p->pid, tid, &stat) || stat.state == 'Z' || stat.state == 'X' || dp_task_is_worker(&stat) ||
	    has_own_files(p, tid))
		return c;
	c.asleep = stat.state == 'D';
	if (!c.asleep)
		c.rank = stat.state == 'R' ? RUNNING : rank_blocked(p->pid, tid);
	if (!alone)
		c.rank = rank_addressed(p, tid, c.rank);
	return c;
}

/* Stops one thread. *ok: it may be borrowed. Otherwise it is released, and the next one is tried. */
static struct dp_error *stop_one(const struct dp_process *p, pid_t tid, uint64_t limit_ns, struct dp_held *h, bool *ok)
{
	bool gone;
	*ok = false;
	*h = (struct dp_held){.tid = tid, .ns_tid = tid, .pid = p->pid};
	DP_TRY(dp_held_seize(p, tid, &gone));
	if (gone)
		return NULL;
	h->seized = true;
	h->held_at_ns = dp_now_ns();
	uint64_t deadline = h->held_at_ns + limit_ns;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	struct dp_stop stop = dp_stop_wait(tid, deadline);
	if (stop.kind == DP_STOP_NONE) {
		dp_held_release(h);
		struct dp_error *err = dp_unstoppable(p, tid);
		dp_late_stop_settle(DP_SETTLE_NS);
		return err;
	}
	const enum rank rank = dp_held_take(h, stop) && stop.kind != DP_STOP_EXEC ? rank_held(p, h) : UNFIT;
	*ok = rank != UNFIT && rank != TIMED && rank != DISPATCHED && deliver(p, h, deadline);
	if (!*ok)
		dp_held_release(h);
	return NULL;
}

static pid_t read_ns_tid(const struct dp_process *p, pid_t tid)
{
	struct dp_buf status;
	bool nested;
	dp_buf_init(&status);
	pid_t ns_tid = dp_proc_slurp(&status, "/proc/%d/task/%d/status", p->pid, tid)
	                       ? dp_status_ns_pid(dp_buf_str(&status), &nested)
	                       : tid;
	dp_buf_fini(&status);
	return ns_tid;
}

/* Tries the threads in the order of their rank, until one can be borrowed. */
static struct dp_error *try_all(const struct dp_process *p, const struct candidate *c, size_t n, uint64_t limit_ns,
                                struct dp_held *ret)
{
	struct dp_error *err = NULL;
	for (int rank = BLOCKED; rank < UNFIT; rank++)
		for (size_t i = 0; i < n; i++) {
			bool ok = false;
			if ((int)c[i].rank != rank)
				continue;
			dp_error_destroy(err);
			pid_t ns_tid = read_ns_tid(p, c[i].tid);
			err = stop_one(p, c[i].tid, limit_ns, ret, &ok);
			ret->ns_tid = ns_tid;
			if (ok || (err && err->tag != DP_TAG_UNSTOPPABLE && err->tag != DP_TAG_VFORK))
				return err;
		}
	return err ? err : no_thread(p);
}

static struct dp_error *choose(const struct dp_process *p, const struct dp_tids *tids, uint64_t limit_ns, struct dp_held *ret)
{
	size_t n = 0;
	pid_t asleep = 0;
	struct candidate *c = calloc(tids->n, sizeof(*c));
	if (!c)
		return dp_error_nomem();
	for (size_t most = tids->n; n < most;) {
		c[n] = look_at(p, tids->tid[n], tids->n == 1);
		if (c[n].asleep)
			asleep = c[n].tid;
		if (c[n].rank == LEADER && most - n > FURTHER)
			most = n + FURTHER;
		if (c[n++].rank == BLOCKED)
			break;
	}
	struct dp_error *err = try_all(p, c, n, limit_ns, ret);
	if (err && err->tag == DP_TAG_NO_THREAD && asleep) {
		dp_error_destroy(err);
		err = dp_unstoppable(p, asleep);
	}
	free(c);
	return err;
}

static struct dp_error *choose_once(const struct dp_process *p, uint64_t limit_ns, struct dp_held *ret)
{
	struct dp_tids tids;
	if (!dp_proc_tids(p->pid, &tids))
		return dp_error_nomem();
	struct dp_error *err =
	        tids.n ? choose(p, &tids, limit_ns, ret) : dp_error(DP_TAG_GONE, "process %d (%s) ended", p->pid, p->comm);
	free(tids.tid);
	if (!err || err->tag != DP_TAG_NO_THREAD || !dp_process_has_no_memory(p))
		return err;
	dp_error_destroy(err); /* its threads are on their way out */
	return dp_error(DP_TAG_GONE, "process %d (%s) ended", p->pid, p->comm);
}

struct dp_error *dp_choose_running(const struct dp_process *p, uint64_t limit_ns, struct dp_held *ret)
{
	const uint64_t begin = dp_now_ns();
	dp_late_stop_reap();
	if (dp_process_start_time(p->pid) != p->start_time)
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", p->pid, p->comm);
	for (;;) { /* a page fault or a short vfork is over soon; a timed call may not be */
		struct dp_error *err = choose_once(p, limit_ns, ret);
		const bool nobody = err && err->tag == DP_TAG_NO_THREAD;
		if (!err || (err->tag != DP_TAG_UNSTOPPABLE && !nobody && err->tag != DP_TAG_VFORK) ||
		    dp_now_ns() - begin >= (nobody ? limit_ns / 5 : limit_ns))
			return err;
		dp_error_destroy(err);
		nanosleep(&(struct timespec){0, 100000}, NULL);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Stops all threads of a process together, for as short as possible.
 *
 * Whatever does not need stopped threads is done first: list them, read their states, seize them. Then all are interrupted, and
 * each one's registers are read while others are still stopping. The link count of /proc/PID/task, the number of threads + 2,
 * shows whether the set is complete; they are listed again only if it is not. A thread in uninterruptible sleep (a vfork parent
 * above all) is best found before it is seized: it neither stops nor can be detached. A kernel worker (dp_task_is_worker()) is
 * counted, comes and goes, and is never stopped: the request it works on would fail.
 *
 * Threads that signals are sent to are stopped last and released first: while one of them is traced, a signal that the process
 * ignores is not ignored, and may wake a running thread instead (eintr.c).
 */
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/eintr.h"
#include "injector/tracee/stop/watchdog.h"
#include "injector/tracee/stop/holds.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/tracee.h"
#include "injector/tracee/stop/exec_reaper.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

/* Only we can reap a thread that was killed while held, and an exec of its process waits for that. */
#define DYING_NS UINT64_C(50000000)

#define LOOK_NS   200000 /* between two polls of a state that changes without notice */
#define LAST_TURN 3u
#define STRAY_NS  UINT64_C(5000000) /* signals are sent to it and it did not stop in time: to be released first */

struct freezer {
	const struct dp_process *p;
	struct dp_freeze f;
	size_t cap;
	uint64_t deadline;
	struct dp_tids later; /* to be stopped after all others */
	bool nested;          /* the target lives in another pid namespace */
	uint64_t free_ns;     /* no thread was stopped until then; 0: none was asked to stop */
	bool execed;
	bool only_workers; /* the last listing had only kernel workers */
};

static struct dp_error *gone(const struct dp_process *p)
{
	return dp_error(DP_TAG_GONE, "process %d (%s) ended or called exec", p->pid, p->comm);
}

/*
 * Waits until no thread is in uninterruptible sleep, which mostly takes microseconds. No thread is seized yet. Removes the kernel
 * workers from the list.
 */
static struct dp_error *await_stoppable(const struct dp_process *p, struct dp_tids *tids, uint64_t deadline)
{
	struct dp_task_stat stat;
	const size_t listed = tids->n;
	tids->n = 0;
	for (size_t i = 0; i < listed; i++) {
		bool found = dp_proc_stat(p->pid, tids->tid[i], &stat);
		if (found && dp_task_is_worker(&stat))
			continue;
		while (found && stat.state == 'D' && dp_now_ns() < deadline) {
			nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
			found = dp_proc_stat(p->pid, tids->tid[i], &stat);
		}
		if (found && stat.state == 'D')
			return dp_unstoppable(p, tids->tid[i]);
		tids->tid[tids->n++] = tids->tid[i];
	}
	return NULL;
}

static bool known(const struct freezer *z, pid_t tid, size_t hint)
{
	const size_t n = z->f.n;
	/* Lists keep their order, except for the few stopped last: the entries after those are a little before the hint. */
	for (size_t k = 0; k < n; k++)
		if (z->f.thread[(hint % n + n - k) % n].tid == tid)
			return true;
	return false;
}

static pid_t read_ns_tid(const struct freezer *z, pid_t tid)
{
	struct dp_buf status;
	bool nested;
	pid_t ns_tid = tid;
	if (!z->nested)
		return tid;
	dp_buf_init(&status);
	if (dp_proc_slurp(&status, "/proc/%d/task/%d/status", z->p->pid, tid))
		ns_tid = dp_status_ns_pid(dp_buf_str(&status), &nested);
	dp_buf_fini(&status);
	return ns_tid;
}

static struct dp_error *adopt(struct freezer *z, pid_t tid, bool addressed)
{
	bool ended;
	if (z->f.n == z->cap) {
		size_t cap = z->cap ? 2 * z->cap : 64;
		struct dp_held *grown = realloc(z->f.thread, cap * sizeof(*grown));
		if (!grown)
			return dp_error_nomem();
		z->f.thread = grown;
		z->cap = cap;
	}
	dp_exec_reaper_watch(z->f.thread, z->f.n);
	struct dp_error *err = dp_held_seize(z->p, tid, &ended);
	dp_exec_reaper_watch(NULL, 0);
	if (err)
		return err;
	if (!ended)
		z->f.thread[z->f.n++] = (struct dp_held){
		        .tid = tid, .ns_tid = read_ns_tid(z, tid), .pid = z->p->pid, .seized = true, .addressed = addressed};
	return NULL;
}

enum turn { SEIZED_ALREADY, FIRST, ADDRESSED };

static struct dp_error *put_off(struct freezer *z, pid_t tid)
{
	pid_t *grown = realloc(z->later.tid, (z->later.n + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	z->later.tid = grown;
	z->later.tid[z->later.n++] = tid;
	return NULL;
}

static struct dp_error *adopt_each(struct freezer *z, const struct dp_tids *tids, const enum turn *turn, enum turn which)
{
	struct dp_error *err = NULL;
	for (size_t i = 0; !err && i < tids->n; i++)
		if (turn[i] == which && !known(z, tids->tid[i], i)) /* a listing may contain a thread twice */
			err = adopt(z, tids->tid[i], which == ADDRESSED);
	return err;
}

static enum turn turn_to_seize(const struct freezer *z, pid_t tid, size_t hint)
{
	if (known(z, tid, hint))
		return SEIZED_ALREADY;
	return tid == z->p->pid || dp_proc_has_children(z->p->pid, tid) ? ADDRESSED : FIRST;
}

/*
 * Seizes every listed thread that is not seized yet. Threads whose signals would go to others (eintr.c) are seized last, or, the
 * first time, later.
 */
static struct dp_error *adopt_all(struct freezer *z, const struct dp_tids *tids, bool first)
{
	dp_auto_free enum turn *turn = calloc(tids->n + 1, sizeof(*turn));
	if (!turn)
		return dp_error_nomem();
	for (size_t i = 0; i < tids->n; i++)
		turn[i] = turn_to_seize(z, tids->tid[i], i);
	dp_exec_reaper_begin(z->p->pid);
	struct dp_error *err = adopt_each(z, tids, turn, FIRST);
	if (!err && (!first || !z->f.n))
		err = adopt_each(z, tids, turn, ADDRESSED);
	else
		for (size_t i = 0; !err && i < tids->n; i++)
			err = turn[i] == ADDRESSED ? put_off(z, tids->tid[i]) : NULL;
	dp_exec_reaper_end();
	return err;
}

static struct dp_error *adopt_later(struct freezer *z, uint64_t limit_ns)
{
	struct dp_error *err = NULL;
	dp_exec_reaper_begin(z->p->pid);
	for (size_t i = 0; !err && i < z->later.n; i++)
		if (!known(z, z->later.tid[i], i))
			err = adopt(z, z->later.tid[i], true);
	dp_exec_reaper_end();
	z->later.n = 0;
	z->deadline = dp_now_ns() + limit_ns; /* to begin again would take longer */
	return err;
}

/*
 * Removes from the list the threads already held, and the kernel workers. It is certain that no others are left if the listing is
 * as long as the thread count, read after it, and all listed threads still exist after the count. Held threads and workers do.
 */
static void keep_new(struct freezer *z, int task_dir, struct dp_tids *tids)
{
	struct stat st;
	const size_t listed = tids->n;
	const bool whole = !fstat(task_dir, &st) && st.st_nlink == 2 + listed;
	tids->n = 0;
	for (size_t i = 0; i < listed; i++)
		if (!known(z, tids->tid[i], i) && !dp_proc_is_worker(z->p->pid, tids->tid[i]))
			tids->tid[tids->n++] = tids->tid[i];
	const bool leader = z->p->leader_zombie && tids->n == 1 && tids->tid[0] == z->p->pid;
	z->only_workers = whole && (!tids->n || leader);
}

static struct dp_error *adopt_listed(struct freezer *z, int task_dir)
{
	struct dp_tids tids;
	if (!dp_proc_tids(z->p->pid, &tids))
		return dp_error_nomem();
	keep_new(z, task_dir, &tids);
	struct dp_error *err = adopt_all(z, &tids, false);
	free(tids.tid);
	return err;
}

/* Everything that needs no stopped thread. */
static struct dp_error *prepare(struct freezer *z)
{
	struct dp_buf status;
	struct dp_tids tids;
	dp_buf_init(&status);
	if (dp_proc_slurp(&status, "/proc/%d/status", z->p->pid))
		dp_status_ns_pid(dp_buf_str(&status), &z->nested);
	dp_buf_fini(&status);
	if (!dp_proc_tids(z->p->pid, &tids))
		return dp_error_nomem();
	struct dp_error *err = await_stoppable(z->p, &tids, z->deadline);
	if (!err)
		err = adopt_all(z, &tids, true);
	free(tids.tid);
	return err;
}

static void interrupt_new(struct freezer *z, size_t from)
{
	for (size_t i = from; i < z->f.n; i++) {
		struct dp_held *h = &z->f.thread[i];
		h->held_at_ns = dp_now_ns();
		ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL);
	}
}

static void take_stop(struct freezer *z, struct dp_held *h, struct dp_stop stop)
{
	if (stop.kind != DP_STOP_NONE && dp_held_take(h, stop))
		dp_holds_began(h, z->free_ns);
	z->execed |= stop.kind == DP_STOP_EXEC;
}

/* Polls every thread that has not stopped yet; returns how many still run. */
static size_t collect(struct freezer *z)
{
	size_t running = 0;
	for (size_t i = 0; i < z->f.n; i++) {
		struct dp_held *h = &z->f.thread[i];
		if (!h->stopped && !h->exited)
			take_stop(z, h, dp_stop_wait(h->tid, 0));
		running += !h->stopped && !h->exited;
	}
	return running;
}

/*
 * Waits for one thread after the other. They stop in parallel, so the total wait is that for the slowest. Each wait sleeps until
 * SIGCHLD reports a stop: the threads may need this processor in order to stop.
 */
static void await_in_turn(struct freezer *z, size_t from, uint64_t until)
{
	for (size_t i = from; i < z->f.n; i++) {
		struct dp_held *h = &z->f.thread[i];
		if (h->stopped || h->exited)
			continue;
		take_stop(z, h, dp_stop_sleep(h->tid, until));
		if (!h->stopped && !h->exited)
			return;
	}
}

/*
 * Finds threads that were killed after they had stopped. An exec of the process kills them, and its thread does not stop until
 * they are reaped.
 */
static void bury(struct freezer *z)
{
	for (size_t i = 0; i < z->f.n; i++) {
		struct dp_held *h = &z->f.thread[i];
		if (!h->stopped || dp_stop_wait(h->tid, 0).kind != DP_STOP_EXITED)
			continue;
		h->stopped = false;
		h->exited = true;
	}
}

#define FIRST_NS UINT64_C(100000000) /* for the first thread to stop */
#define SLICE_NS UINT64_C(250000)    /* between two checks whether any thread has stopped */

static bool somebody_stands(const struct freezer *z)
{
	for (size_t i = 0; i < z->f.n; i++)
		if (z->f.thread[i].stopped)
			return true;
	return false;
}

/*
 * The limit bounds how long we keep a thread stopped. While none is stopped, the deadline moves: on a busy machine a thread may
 * wait longer for a processor.
 */
static struct dp_error *await_all(struct freezer *z, size_t from, uint64_t limit_ns)
{
	const uint64_t first = dp_now_ns() + FIRST_NS;
	for (unsigned round = 0;; round++) {
		const uint64_t before = dp_now_ns();
		if (!collect(z))
			break;
		const uint64_t now = dp_now_ns();
		const bool nobody = !somebody_stands(z);
		if (nobody)
			z->free_ns = before;
		if (nobody && now < first)
			z->deadline = now + limit_ns;
		if (now >= z->deadline)
			return dp_error(DP_TAG_UNSTOPPABLE, "not all threads of process %d (%s) stopped in time", z->p->pid,
			                z->p->comm);
		if (round % 8 == 7)
			bury(z);
		await_in_turn(z, from, !nobody && z->deadline < now + SLICE_NS ? z->deadline : now + SLICE_NS);
	}
	return z->execed ? gone(z->p) : NULL;
}

static size_t alive(const struct freezer *z)
{
	size_t n = 0;
	for (size_t i = 0; i < z->f.n; i++)
		n += !z->f.thread[i].exited;
	return n;
}

/* Are all threads of the process stopped? */
static bool complete(const struct freezer *z, int task_dir)
{
	struct stat st;
	return fstat(task_dir, &st) == 0 && st.st_nlink == 2 + alive(z) + z->p->leader_zombie;
}

/*
 * Dying threads are counted but cannot be seized; that passes. If it does not, the count means something else on this kernel, and
 * a few listings without a new thread must suffice.
 */
static struct dp_error *stop_all(struct freezer *z, int task_dir, uint64_t limit_ns)
{
	size_t from = 0;
	z->f.begin_ns = z->free_ns = dp_now_ns();
	for (int quiet = 0; quiet < 4; quiet++) {
		interrupt_new(z, from);
		DP_TRY(await_all(z, from, limit_ns));
		const bool others = z->later.n;
		if (!others && complete(z, task_dir))
			break;
		from = z->f.n;
		DP_TRY(others ? adopt_later(z, limit_ns) : adopt_listed(z, task_dir));
		if (z->only_workers)
			break;
		if (z->f.n > from)
			quiet = -1;
	}
	return alive(z) ? NULL : gone(z->p);
}

/* Releases all threads. A thread that did not stop is named in the error, and released when it stops. */
static struct dp_error *give_up(struct freezer *z, struct dp_error *err, struct dp_freeze *ret)
{
	pid_t stuck = 0;
	for (size_t i = 0; i < z->f.n; i++)
		if (!z->f.thread[i].stopped && !z->f.thread[i].exited)
			stuck = z->f.thread[i].tid;
	dp_watchdog_start("all threads of the program"); /* until all that were asked to stop have stopped and are released */
	dp_thaw_all(&z->f);
	dp_holds_in_vain();
	if (z->free_ns)
		*ret = (struct dp_freeze){.begin_ns = z->free_ns, .end_ns = z->f.end_ns};
	if (stuck && err->tag == DP_TAG_UNSTOPPABLE) {
		dp_error_destroy(err);
		err = dp_unstoppable(z->p, stuck);
	}
	dp_late_stop_settle(DP_SETTLE_NS);
	dp_watchdog_stop();
	return err;
}

/* Threads that ended while others were being stopped are not part of the result. */
static void drop_exited(struct dp_freeze *f)
{
	size_t n = 0;
	for (size_t i = 0; i < f->n; i++)
		if (!f->thread[i].exited)
			f->thread[n++] = f->thread[i];
	f->n = n;
}

/* As in every list of threads. */
static void leader_first(struct freezer *z)
{
	for (size_t i = 1; i < z->f.n; i++)
		if (z->f.thread[i].tid == z->p->pid) {
			const struct dp_held leader = z->f.thread[i];
			z->f.thread[i] = z->f.thread[0];
			z->f.thread[0] = leader;
			return;
		}
}

struct dp_error *dp_freeze_all(const struct dp_process *p, uint64_t limit_ns, struct dp_freeze *ret)
{
	struct freezer z = {.p = p, .deadline = dp_now_ns() + limit_ns};
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
	*ret = (struct dp_freeze){0};
	dp_late_stop_reap();
	dp_auto_close int task_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (task_dir < 0 || dp_process_start_time(p->pid) != p->start_time)
		return gone(p);
	dp_watchdog_start("all threads of the program");
	struct dp_error *err = prepare(&z);
	z.deadline = dp_now_ns() + limit_ns; /* the limit bounds the time threads are stopped */
	if (!err)
		err = stop_all(&z, task_dir, limit_ns);
	free(z.later.tid);
	if (err)
		return give_up(&z, err, ret);
	drop_exited(&z.f);
	leader_first(&z);
	*ret = z.f;
	return NULL;
}

/*
 * While a thread that signals are sent to is stopped, released threads are woken by its signals: it goes first (eintr.c). A
 * thread that was not waiting may have just started its first child. One that waits for a child has one, whatever was seen when
 * it was seized.
 */
static unsigned turn_of(const struct dp_held *h)
{
	const bool waits = h->stopped && h->in_syscall_stop && (int64_t)h->regs.rax <= -512;
	const bool for_child = waits && (h->regs.orig_rax == SYS_wait4 || h->regs.orig_rax == SYS_waitid);
	if (h->addressed || for_child)
		return waits && dp_eintr_mended(&h->regs) ? 2 : 0;
	return waits ? LAST_TURN : 1;
}

static void let_go(struct dp_freeze *f, const struct dp_held *but)
{
	bool stray = false;
	for (unsigned turn = 0; turn <= LAST_TURN; turn++) {
		if (turn == LAST_TURN && stray) /* threads that only wait can do so a little longer */
			dp_late_stop_settle(STRAY_NS);
		for (size_t i = 0; i < f->n; i++) {
			struct dp_held *h = &f->thread[i];
			if (h == but || turn_of(h) != turn)
				continue;
			stray |= h->addressed && h->seized && !h->stopped && !h->exited;
			dp_held_release(h);
		}
	}
}

void dp_thaw_but(struct dp_freeze *f, const struct dp_held *but)
{
	let_go(f, but);
	f->parted = true;
}

void dp_thaw_all(struct dp_freeze *f)
{
	let_go(f, NULL);
	f->end_ns = dp_now_ns();
	dp_late_stop_settle(DYING_NS);
	dp_watchdog_stop();
	free(f->thread);
	f->thread = NULL;
	f->n = 0;
}

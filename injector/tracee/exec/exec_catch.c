/* SPDX-License-Identifier: MIT */
/*
 * The thread waits inside execve for the answer to the watch's question. It is seized there, asked to stop, and then let go on.
 * It stops either way: at PTRACE_EVENT_EXEC, or, if the exec fails after all, on its way out of the call. If it is not the leader
 * of its process, exec gives it the leader's id.
 *
 * Since Linux 6.8 exec opens the program before it takes the lock that ptrace needs. It opens the interpreter of a #! script
 * after that, and so did older kernels with every program: to seize the thread would be to wait for the exec, which waits for us.
 * Such an exec is let go first. Seizing then waits until the kernel gives up the lock, on its way to the exec stop, and mostly
 * comes in time for that stop; if not, the process is late. SEIZE_NS is for what we did not foresee: then the thread of the watch
 * answers, long before the watchdog ends us.
 */
#include "injector/tracee/exec/exec_catch.h"

#include "injector/tracee/borrow/dispatch.h"
#include "injector/tracee/exec/exec_named.h"
#include "injector/tracee/proc/auxv.h"
#include "injector/tracee/proc/mappers.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEIZE_NS UINT64_C(500000000)
#define MOST_NS  UINT64_C(4000000000) /* of it, however long a user lets processes wait */
#define EXEC_NS  UINT64_C(1000000000) /* until the exec is over: files may have to be read */
#define LATE_NS  UINT64_C(300000000)  /* until one that was let go got a processor */
#define ENTRY_NS UINT64_C(2000000000) /* until the program's loader is done */

/* A user whose machine is slow lets processes wait longer (--max-wait). */
static uint64_t at_least(const struct dp_exec_watch *w, uint64_t ns)
{
	const uint64_t wait_ns = dp_exec_watch_wait_ns(w);
	return wait_ns > DP_EXEC_WAIT_NS && wait_ns > ns ? wait_ns : ns;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------- */

static bool is(const struct dp_exec_start *start, const struct stat *st)
{
	return st->st_dev == start->file.dev && st->st_ino == start->file.ino;
}

/* Has the process become this program? It has not if the file was its program's loader. A script is executed by another file. */
static bool executes(pid_t pid, const struct dp_exec_start *start)
{
	char exe[32];
	struct stat st;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	return !start->elf || stat(exe, &st) || is(start, &st); /* without an answer it has ended */
}

/* ---- what can be held ------------------------------------------------------------------------------------------------------ */

/* False also if that is not known: to be late is better than to wait for the exec. */
static bool can_be_seized(const struct dp_exec_start *start)
{
	struct stat named;
	return !dp_exec_locks_early() && dp_exec_stat_named(start, &named) && is(start, &named);
}

static bool traces_all(void)
{
	struct dp_buf status;
	const char *own = NULL;
	unsigned long long caps = 0;
	dp_buf_init(&status);
	if (dp_proc_slurp(&status, "/proc/self/status"))
		own = dp_status_find(dp_buf_str(&status), "CapEff");
	const bool all = own && sscanf(own, "%llx", &caps) == 1 && caps >> CAP_SYS_PTRACE & 1;
	dp_buf_fini(&status);
	return all;
}

/* The kernel ignores a program's setuid bit and capabilities if its tracer lacks CAP_SYS_PTRACE: the program would fail. */
static struct dp_error *check_privileges(const struct dp_exec_start *start)
{
	if (!start->gains || traces_all())
		return NULL;
	return dp_error(DP_TAG_PERMISSION,
	                "process %d executes a program that gains privileges, and would not gain them while dynprobe holds it "
	                "without CAP_SYS_PTRACE: run dynprobe as root",
	                start->pid);
}

/* ---- threads whose exec took too long -------------------------------------------------------------------------------------- */

static __thread struct slow {
	pid_t pid, tid;
} * slow;
static __thread size_t nslow;

static void release(pid_t tid, struct dp_stop stop)
{
	struct dp_held h = {.tid = tid, .seized = true};
	if (dp_held_take(&h, stop))
		dp_held_release(&h);
}

/* Waits for the stop of the thread, whatever its id is by then; *tid says it. */
static struct dp_stop await(const struct slow *one, uint64_t until, pid_t *tid)
{
	siginfo_t si;
	*tid = one->tid;
	struct dp_stop stop = dp_stop_sleep(one->tid, until);
	if (stop.kind != DP_STOP_EXITED || one->tid == one->pid)
		return stop;
	*tid = one->pid;
	stop = dp_stop_sleep(one->pid, until);
	if (stop.kind == DP_STOP_EXEC) /* until this is consumed, no request may name the new id; the code has no use */
		waitid(P_PID, (id_t)one->pid, &si, WSTOPPED | WNOHANG | __WALL);
	return stop;
}

/* Out of memory, it is waited for. */
static void note_slow(const struct slow *one)
{
	struct slow *grown = realloc(slow, (nslow + 1) * sizeof(*grown));
	pid_t tid;
	if (grown) {
		slow = grown;
		slow[nslow++] = *one;
	} else {
		const struct dp_stop stop = await(one, DP_FOREVER, &tid);
		release(tid, stop);
	}
}

size_t dp_exec_catch_settle(void)
{
	size_t kept = 0;
	for (size_t i = 0; i < nslow; i++) {
		pid_t tid;
		const struct dp_stop stop = await(&slow[i], 0, &tid);
		if (stop.kind == DP_STOP_NONE)
			slow[kept++] = slow[i];
		else
			release(tid, stop);
	}
	nslow = kept;
	return kept;
}

/* ---- all together ---------------------------------------------------------------------------------------------------------- */

/* The thread is held until its exec is over, and nothing tells the watchdog meanwhile that we are alive. */
static void allow_exec(const struct dp_exec_watch *w)
{
	dp_watchdog_limit(DP_WATCHDOG_NS, DP_WATCHDOG_GRACE_NS + at_least(w, EXEC_NS));
}

/* After the thread was seized and let go. */
static struct dp_error *take_over(const struct dp_exec_watch *w, const struct dp_exec_start *start, struct dp_exec_caught *ret)
{
	const struct slow one = {start->pid, start->tid};
	pid_t tid;
	allow_exec(w);
	const struct dp_stop stop = await(&one, dp_now_ns() + at_least(w, EXEC_NS), &tid);
	if (stop.kind == DP_STOP_NONE) {
		note_slow(&one);
		return dp_error(DP_TAG_UNSTOPPABLE, "process %d was executing a program for more than a second", start->pid);
	}
	if (stop.kind == DP_STOP_EXEC && (start->any || executes(tid, start)))
		return dp_launch_adopt(&(struct dp_launch_adopted){.pid = tid, .until_ns = dp_now_ns() + at_least(w, ENTRY_NS)},
		                       &ret->launch);
	ret->late = stop.kind != DP_STOP_EXEC && ret->unheld && (start->any ? dp_exec_is_over(start) : executes(tid, start));
	release(tid, stop);
	return NULL;
}

static struct dp_error *seize(const struct dp_exec_start *start, bool *seized)
{
	const struct dp_process p = {.pid = start->pid, .alive = start->tid};
	bool gone;
	DP_TRY(dp_held_seize(&p, start->tid, &gone));
	*seized = !gone;
	if (!gone)
		ptrace(PTRACE_INTERRUPT, start->tid, NULL, NULL);
	return NULL;
}

static struct dp_error *catch (struct dp_exec_watch *w, struct dp_exec_start *start, struct dp_exec_caught *ret)
{
	bool seized = false;
	struct dp_error *err = check_privileges(start);
	ret->unheld = !err && !can_be_seized(start);
	if (ret->unheld)
		dp_exec_watch_allow(w, start);
	if (!err)
		err = seize(start, &seized);
	if (!ret->unheld) {
		dp_exec_watch_allow(w, start);
		ret->unheld = start->late; /* we took too long: the thread of the watch has let it go */
	}
	ret->late = ret->unheld && !err && !seized; /* it has ended already */
	return seized ? take_over(w, start, ret) : err;
}

/* ---- loaders --------------------------------------------------------------------------------------------------------------- */

/* One thread, which is ours now, in a program that has begun, none of our memory, and system calls that arrive in the kernel. */
static bool is_simple(const struct dp_process *p)
{
	struct dp_tids tids;
	const bool listed = dp_proc_tids(p->pid, &tids), one = listed && tids.n == 1;
	if (listed)
		free(tids.tid);
	return one && dp_loader_is_done(p) && !dp_mapper_has_ours(p->pid) && !dp_dispatch_possible(p, p->pid);
}

/* After the thread was seized in its open() and let go. */
static struct dp_error *take_loader(const struct dp_exec_watch *w, const struct dp_exec_start *start, struct dp_exec_caught *ret)
{
	const struct slow one = {start->pid, start->tid};
	const struct dp_process p = {.pid = start->pid, .alive = start->tid};
	struct dp_launch_adopted a = {.pid = start->pid, .until_ns = dp_now_ns() + at_least(w, EXEC_NS) + at_least(w, ENTRY_NS)};
	pid_t tid;
	allow_exec(w);
	const struct dp_stop stop = await(&one, dp_now_ns() + at_least(w, EXEC_NS), &tid);
	if (stop.kind == DP_STOP_NONE) {
		note_slow(&one);
		return dp_error(DP_TAG_UNSTOPPABLE, "process %d was opening a library for more than a second", start->pid);
	}
	if (stop.kind == DP_STOP_TRAP && start->tid == start->pid && dp_loader_is_starting(&p, &a.stack))
		a.at = DP_LAUNCH_PREPARED;
	else if (stop.kind == DP_STOP_TRAP && is_simple(&p))
		a.at = DP_LAUNCH_LOADS;
	if (a.at)
		return dp_launch_adopt(&a, &ret->launch);
	ret->loads = stop.kind != DP_STOP_EXITED;
	release(tid, stop);
	return NULL;
}

static struct dp_error *catch_loader(struct dp_exec_watch *w, struct dp_exec_start *start, struct dp_exec_caught *ret)
{
	bool seized = false;
	struct dp_error *err = seize(start, &seized);
	dp_exec_watch_allow(w, start);
	return seized ? take_loader(w, start, ret) : err;
}

/*
 * One that was let go may not have executed the program yet: it would be taken for the program that it still is. If it executes
 * that once more, this waits in vain.
 */
static void await_late(const struct dp_exec_start *start)
{
	const uint64_t until = dp_now_ns() + LATE_NS;
	while (!start->loads && !dp_exec_is_over(start) && dp_now_ns() < until)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

struct dp_error *dp_exec_catch(struct dp_exec_watch *w, struct dp_exec_caught *ret)
{
	struct dp_exec_start start;
	struct dp_error *err = NULL;
	*ret = (struct dp_exec_caught){0};
	const uint64_t seize_ns = at_least(w, SEIZE_NS);
	if (!dp_exec_watch_take(w, seize_ns < MOST_NS ? seize_ns : MOST_NS, &start))
		return NULL;
	ret->pid = start.pid;
	ret->late = start.late && !start.loads;
	ret->loads = start.late && start.loads;
	if (start.late) {
		await_late(&start);
		return NULL;
	}
	dp_watchdog_start("a program that is being started");
	err = start.loads ? catch_loader(w, &start, ret) : catch (w, &start, ret);
	dp_watchdog_stop();
	return err;
}

/* SPDX-License-Identifier: MIT */
/*
 * Stops one thread and checks whether it is at a safe point. First checks what is known without a stop: whether it runs or
 * sleeps, its system call, its scheduling. A timed call that ptrace interrupts restarts its timeout (eintr.c), so threads in one
 * come last.
 */
#include "injector/lttng/safe/safe.h"

#include "injector/tracee/borrow/dispatch.h"
#include "injector/tracee/stop/eintr.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/proc/proc.h"

#include "base/buf.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#define CODE64  0x33
#define STOP_NS UINT64_C(100000000) /* on a busy machine it first needs a processor; no other thread waits for us meanwhile */

/* ---- without a stop ---------------------------------------------------------------------------------------------------------
 */

static bool ordinary_schedule(const struct dp_process *p, pid_t tid)
{
	cpu_set_t own, leader;
	if (sched_getscheduler(tid) != SCHED_OTHER)
		return false;
	if (sched_getaffinity(tid, sizeof(own), &own) || sched_getaffinity(p->pid, sizeof(leader), &leader))
		return true; /* more processors than cpu_set_t holds: assume no special affinity */
	return CPU_COUNT(&own) >= CPU_COUNT(&leader);
}

/* Calls during which a program changes its memory or its threads. */
static bool passing_call(long nr)
{
	switch (nr) {
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_mremap:
	case SYS_madvise:
	case SYS_brk:
	case SYS_clone:
	case SYS_clone3:
	case SYS_fork:
	case SYS_vfork:
	case SYS_execve:
	case SYS_exit:
	case SYS_exit_group:
		return true;
	default:
		return false;
	}
}

enum dp_safe_rank dp_safe_rank(struct dp_safe *s, const struct dp_process *p, pid_t tid)
{
	struct dp_task_stat stat;
	long nr;
	uint64_t args[6];
	(void)s;
	if (!dp_proc_stat(p->pid, tid, &stat) || stat.state == 'Z' || stat.state == 'X' || dp_task_is_worker(&stat))
		return DP_SAFE_NEVER;
	if (!ordinary_schedule(p, tid))
		return DP_SAFE_ODD;
	if (stat.state != 'S' || !dp_proc_syscall(p->pid, tid, &nr, args) || nr < 0 || passing_call(nr))
		return DP_SAFE_RUNNING;
	return dp_eintr_class(nr, args) == DP_EINTR_TIMED ? DP_SAFE_TIMED : DP_SAFE_BEST;
}

/* ---- with a stop ----------------------------------------------------------------------------------------------------------- */

static pid_t read_ns_tid(const struct dp_process *p, pid_t tid)
{
	struct dp_buf status;
	bool nested;
	dp_buf_init(&status);
	const pid_t ns_tid = dp_proc_slurp(&status, "/proc/%d/task/%d/status", p->pid, tid)
	                             ? dp_status_ns_pid(dp_buf_str(&status), &nested)
	                             : tid;
	dp_buf_fini(&status);
	return ns_tid;
}

static enum dp_safe_outcome judge(struct dp_safe *s, const struct dp_process *p, const struct dp_held *h, char why[128])
{
	if (h->group_stopped) {
		snprintf(why, 128, "the process is stopped by job control");
		return DP_SAFE_STOPPED_JOB;
	}
	if (h->pending_signal || h->regs.cs != CODE64) {
		snprintf(why, 128, "it has a pending signal, or runs 32-bit code");
		return DP_SAFE_UNSAFE;
	}
	if (dp_dispatch_of(p, h->tid, NULL, NULL) != DP_DISPATCH_NONE) {
		snprintf(why, 128, "its system calls are dispatched to the program");
		return DP_SAFE_UNSAFE;
	}
	return !s || dp_safe_here(s, p, h, why) ? DP_SAFE_HELD : DP_SAFE_UNSAFE;
}

struct dp_error *dp_safe_take(struct dp_safe *s, const struct dp_process *p, pid_t tid, struct dp_held *ret,
                              enum dp_safe_outcome *outcome, char why[128])
{
	bool gone;
	struct dp_task_stat stat;
	struct dp_held h = {.tid = tid, .ns_tid = read_ns_tid(p, tid), .pid = p->pid};
	*outcome = DP_SAFE_GONE;
	if (!dp_proc_stat(p->pid, tid, &stat) || dp_task_is_worker(&stat))
		return NULL;
	if (stat.state == 'D') { /* it could not stop, nor be released */
		snprintf(why, 128, "it sleeps uninterruptibly");
		*outcome = DP_SAFE_UNSAFE;
		return NULL;
	}
	DP_TRY(dp_held_seize(p, tid, &gone));
	if (gone)
		return NULL;
	h.seized = true;
	h.held_at_ns = dp_now_ns();
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	const struct dp_stop stop = dp_stop_wait(tid, h.held_at_ns + STOP_NS);
	if (stop.kind == DP_STOP_NONE) {
		dp_held_release(&h);
		dp_late_stop_settle(DP_SETTLE_NS);
		snprintf(why, 128, "it did not stop in time");
		*outcome = DP_SAFE_UNSAFE;
		return NULL;
	}
	if (!dp_held_take(&h, stop) || stop.kind == DP_STOP_EXEC) {
		dp_held_release(&h);
		return NULL;
	}
	*outcome = judge(s, p, &h, why);
	*ret = h;
	if (*outcome != DP_SAFE_HELD)
		dp_held_release(&h);
	return NULL;
}

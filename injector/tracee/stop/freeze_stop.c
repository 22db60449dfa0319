/* SPDX-License-Identifier: MIT */
/*
 * One thread's stops.
 *
 * Waiting never consumes a stop (WNOWAIT). The kernel clears a stop's code when a tracer consumes it; a tracer killed after that
 * would swallow the signal that a signal-delivery stop was about to deliver. Unconsumed, the code stays, and the thread receives
 * its signal when its tracer dies. Interrupt, group and exec stops ignore the code; for system-call stops see DP_SEIZE_OPTIONS.
 */
#include "injector/tracee/proc/checks.h"
#include "injector/tracee/stop/eintr.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"
#include "injector/tracee/stop/holds.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/proc/tracer.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS   10000u
#define TOLD_NS   UINT64_C(250000) /* SIGCHLD ends the sleep earlier, unless another thread of ours took it */
#define UNTOLD_NS UINT64_C(100000)  /* enough to really sleep */
#define STRAY_NS  UINT64_C(1000000)

/* The leader of our own child keeps its exit status for whoever waits for the command. */
static void reap(pid_t tid)
{
	struct dp_buf status;
	dp_buf_init(&status);
	bool ours = dp_proc_slurp(&status, "/proc/%d/status", tid) && dp_status_long(dp_buf_str(&status), "Tgid", 0) == tid &&
	            dp_status_long(dp_buf_str(&status), "PPid", 0) == getpid();
	dp_buf_fini(&status);
	if (!ours)
		waitpid(tid, NULL, __WALL | WNOHANG);
}

static bool is_end(const siginfo_t *si)
{
	return si->si_code == CLD_EXITED || si->si_code == CLD_KILLED || si->si_code == CLD_DUMPED;
}

static struct dp_stop decode(pid_t tid, const siginfo_t *si)
{
	int sig = si->si_status & 0xff, event = si->si_status >> 8;
	if (is_end(si)) {
		reap(tid);
		return (struct dp_stop){DP_STOP_EXITED, 0};
	}
	if (event == PTRACE_EVENT_STOP)
		return (struct dp_stop){sig == SIGTRAP ? DP_STOP_TRAP : DP_STOP_GROUP, 0};
	if (event == PTRACE_EVENT_EXEC)
		return (struct dp_stop){DP_STOP_EXEC, 0};
	if (sig == (SIGTRAP | 0x80))
		return (struct dp_stop){DP_STOP_SYSCALL, 0};
	return (struct dp_stop){DP_STOP_SIGNAL, sig};
}

bool dp_stop_reap(pid_t tid, siginfo_t *ret)
{
	*ret = (siginfo_t){0};
	if (waitid(P_PID, (id_t)tid, ret, WEXITED | WNOHANG | WNOWAIT | __WALL) || !ret->si_pid || !is_end(ret))
		return false;
	return !waitid(P_PID, (id_t)tid, ret, WEXITED | WNOHANG | __WALL) && ret->si_pid;
}

void dp_stop_await_end(pid_t pid)
{
	siginfo_t si = {0};
	int rc;
	do
		rc = waitid(P_PID, (id_t)pid, &si, WEXITED | __WALL);
	while (rc ? errno == EINTR : !is_end(&si));
}

static struct dp_stop look(pid_t tid, int flags)
{
	siginfo_t si = {0};
	int rc;
	do
		rc = waitid(P_PID, (id_t)tid, &si, WEXITED | WSTOPPED | WNOWAIT | __WALL | flags);
	while (rc != 0 && errno == EINTR);
	if (rc != 0) /* ECHILD: ended, and its id is free or another thread's (exec) */
		return (struct dp_stop){DP_STOP_EXITED, 0};
	return si.si_pid ? decode(tid, &si) : (struct dp_stop){DP_STOP_NONE, 0};
}

/* Our parent may have set it to be ignored; then the kernel sends none. */
static bool is_sent_sigchld(void)
{
	struct sigaction now;
	return sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler != SIG_IGN && !(now.sa_flags & SA_NOCLDSTOP);
}

/*
 * Sleeps until SIGCHLD. The sleep must be real: at a raised priority, a sleep so short that its timer expires on the way lets no
 * other thread run, and the awaited thread may need this processor in order to stop.
 */
struct dp_stop dp_stop_sleep(pid_t tid, uint64_t deadline_ns)
{
	const uint64_t most = is_sent_sigchld() ? TOLD_NS : UNTOLD_NS;
	sigset_t child, old;
	struct dp_stop stop;
	uint64_t now;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &old); /* before the check: a SIGCHLD after it ends the sleep */
	while ((stop = look(tid, WNOHANG)).kind == DP_STOP_NONE && (now = dp_now_ns()) < deadline_ns) {
		const uint64_t left = deadline_ns - now < UNTOLD_NS ? UNTOLD_NS : deadline_ns - now;
		sigtimedwait(&child, NULL, &(const struct timespec){0, (long)(left < most ? left : most)});
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return stop;
}

struct dp_stop dp_stop_wait(pid_t tid, uint64_t deadline_ns)
{
	if (deadline_ns == DP_FOREVER)
		return look(tid, 0);
	struct dp_stop stop = look(tid, WNOHANG);
	if (stop.kind != DP_STOP_NONE || !deadline_ns)
		return stop;
	/* On another processor it stops before we would wake up. */
	for (const uint64_t until = dp_now_ns() + SPIN_NS; stop.kind == DP_STOP_NONE && dp_now_ns() < until;)
		stop = look(tid, WNOHANG);
	return stop.kind == DP_STOP_NONE ? dp_stop_sleep(tid, deadline_ns) : stop;
}

static bool is_exec(const siginfo_t *si)
{
	return !is_end(si) && si->si_status >> 8 == PTRACE_EVENT_EXEC;
}

/*
 * A thread that executes a program gets its process's id. Until this stop is consumed, no request may name that id; the stop's
 * code has no use.
 */
static void consume_exec(pid_t pid)
{
	siginfo_t si;
	waitid(P_PID, (id_t)pid, &si, WSTOPPED | WNOHANG | __WALL);
}

/* If that cannot be read for want of descriptors or memory, it may be. */
static bool is_ours(pid_t pid)
{
	errno = 0;
	const pid_t tracer = dp_tracer_of(pid, pid);
	return tracer ? dp_is_own_task(tracer) : errno == EMFILE || errno == ENFILE || errno == ENOMEM;
}

static void add_stray(pid_t tid, pid_t pid, bool execs);

/*
 * The thread's id does not exist any more. Either it has ended, or it executes a program: then it now has its process's id, and
 * we still trace it.
 */
static void find_execed(const struct dp_held *h)
{
	siginfo_t si = {0};
	if (!h->pid || h->pid == h->tid || waitid(P_PID, (id_t)h->pid, &si, WSTOPPED | WNOWAIT | WNOHANG | __WALL))
		return;
	if (si.si_pid && is_exec(&si)) {
		consume_exec(h->pid);
		ptrace(PTRACE_DETACH, h->pid, NULL, NULL);
	} else if (!si.si_pid && is_ours(h->pid)) {
		add_stray(h->pid, h->pid, true);
	}
}

void dp_held_gone(struct dp_held *h, struct dp_stop stop)
{
	h->exited = true;
	if (stop.kind == DP_STOP_EXITED)
		find_execed(h);
	if (stop.kind != DP_STOP_EXEC)
		return;
	consume_exec(h->tid);
	ptrace(PTRACE_DETACH, h->tid, NULL, NULL);
}

bool dp_held_take(struct dp_held *h, struct dp_stop stop)
{
	h->exited = stop.kind == DP_STOP_EXITED;
	if (h->exited)
		find_execed(h);
	else if (stop.kind == DP_STOP_EXEC)
		consume_exec(h->tid);
	if (h->exited || ptrace(PTRACE_GETREGS, h->tid, NULL, &h->regs) != 0)
		return false; /* killed at the stop: its exit is still to come, and must be reaped */
	h->stopped = true;
	h->group_stopped = stop.kind == DP_STOP_GROUP;
	h->pending_signal = stop.kind == DP_STOP_SIGNAL ? stop.sig : 0;
	h->in_syscall_stop = (int64_t)h->regs.orig_rax >= 0;
	dp_holds_took(h);
	if (dp_eintr_mend(&h->regs)) /* at once, so that it also holds if the tool dies */
		ptrace(PTRACE_POKEUSER, h->tid, (void *)offsetof(struct user_regs_struct, rax), (void *)h->regs.rax);
	return true;
}

void dp_held_release(struct dp_held *h)
{
	if (!h->seized || h->exited)
		return;
	if (!h->stopped) {
		/*
		 * Do not detach it blindly: it may have stopped by now, in a call whose -EINTR was not turned into a restart. A
		 * late stop is checked for that first. It stops only if it was asked to.
		 */
		if (!h->held_at_ns)
			ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL);
		dp_late_stop_add(h->tid, h->pid);
		h->seized = false;
		return;
	}
	if (h->regs_changed)
		ptrace(PTRACE_SETREGS, h->tid, NULL, &h->regs);
	if (ptrace(PTRACE_DETACH, h->tid, NULL, (void *)(long)h->pending_signal) != 0)
		dp_late_stop_add(h->tid, h->pid); /* dying */
	dp_holds_ended(h);
	h->seized = h->stopped = false;
}

static struct dp_error *seize_refused(const struct dp_process *p, pid_t tid, int sys)
{
	const pid_t tracer = dp_tracer_of(p->pid, tid);
	if (tracer && dp_is_own_task(tracer)) /* a late stop of ours */
		return dp_unstoppable(p, tid);
	if (tracer)
		return dp_tracer_refuse(p, tid, tracer);
	if (sys == EPERM) {
		DP_TRY(dp_check_permission(p));
		return dp_tracer_refuse(p, tid, 0);
	}
	errno = sys;
	return dp_error_sys(DP_TAG_SYS, "cannot seize thread %d of process %d (%s)", tid, p->pid, p->comm);
}

/* It has the process's id, and executes another program: asks it to stop, so that it can be released. */
static struct dp_error *give_back_execed(const struct dp_process *p)
{
	ptrace(PTRACE_INTERRUPT, p->pid, NULL, NULL);
	dp_late_stop_add(p->pid, p->pid);
	return dp_unstoppable(p, p->pid);
}

/* The wait for an exec was so long that the thread's exec stop is over. */
static bool has_execed(const struct dp_process *p, pid_t tid)
{
	return tid != p->pid && syscall(SYS_tgkill, p->pid, tid, 0) && errno == ESRCH && is_ours(p->pid);
}

#define SEIZES       5
#define SEIZE_GAP_NS 1000000

/* If another thread executed meanwhile, the first thread is dead, which is EPERM, as from another tracer. */
static bool seize_again(const struct dp_process *p, pid_t tid)
{
	for (unsigned i = 0; tid == p->pid && i < SEIZES && !dp_tracer_of(p->pid, tid); i++) {
		if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(long)DP_SEIZE_OPTIONS) == 0)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = SEIZE_GAP_NS}, NULL);
	}
	return false;
}

/* PTRACE_SEIZE waits for an exec of the process. */
struct dp_error *dp_held_seize(const struct dp_process *p, pid_t tid, bool *gone)
{
	struct dp_task_stat stat;
	*gone = false;
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(long)DP_SEIZE_OPTIONS) == 0)
		return has_execed(p, tid) ? give_back_execed(p) : NULL;
	int sys = errno;
	*gone = sys == ESRCH || !dp_proc_stat(p->pid, tid, &stat) || stat.state == 'Z' || stat.state == 'X';
	if (!*gone && sys == EPERM && seize_again(p, tid))
		return give_back_execed(p);
	return *gone ? NULL : seize_refused(p, tid, sys);
}

struct dp_error *dp_unstoppable(const struct dp_process *p, pid_t tid)
{
	struct dp_task_stat stat;
	if (dp_proc_in_vfork(p->pid, tid))
		return dp_error(DP_TAG_VFORK, "thread %d of process %d (%s) waits for its vfork child and cannot be stopped", tid,
		                p->pid, p->comm);
	if (!dp_proc_stat(p->pid, 0, &stat))
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", p->pid, p->comm);
	return dp_error(DP_TAG_UNSTOPPABLE, "thread %d of process %d (%s) did not stop in time", tid, p->pid, p->comm);
}

/* ---- late stops ------------------------------------------------------------------------------------------------------------ */

struct stray {
	pid_t tid, pid;
	bool execs; /* only an exec stop of it is nobody else's */
};
static __thread struct stray *stray; /* per thread, as tracing is */
static __thread size_t nstrays, stray_capacity;
static volatile sig_atomic_t changing; /* the list is being changed; dp_late_stop_inspect() leaves it alone then */

static void note_stray(const struct stray *one)
{
	if (nstrays == stray_capacity) {
		size_t capacity = stray_capacity ? 2 * stray_capacity : 64;
		struct stray *grown = realloc(stray, capacity * sizeof(*grown));
		if (!grown)
			return; /* it is released when we end */
		stray = grown;
		stray_capacity = capacity;
	}
	stray[nstrays++] = *one;
}

static void add_stray(pid_t tid, pid_t pid, bool execs)
{
	const sig_atomic_t before = changing;
	changing = 1;
	note_stray(&(const struct stray){tid, pid, execs});
	changing = before;
	dp_watchdog_late_stops();
}

void dp_late_stop_add(pid_t tid, pid_t pid)
{
	add_stray(tid, pid, false);
}

/* Releases it if it has stopped. True: it has not, and may yet. */
static bool may_stand_later(struct stray *s)
{
	siginfo_t si = {0};
	struct dp_held h = {.tid = s->tid, .pid = s->pid, .seized = true};
	if (!h.tid || waitid(P_PID, (id_t)h.tid, &si, WSTOPPED | WEXITED | WNOWAIT | WNOHANG | __WALL) || is_end(&si))
		return false;
	if (!si.si_pid)
		return true;
	if (!s->execs || is_exec(&si)) {
		if (!dp_held_take(&h, decode(h.tid, &si)) || ptrace(PTRACE_DETACH, h.tid, NULL, (void *)(long)h.pending_signal))
			return true;
	}
	s->tid = 0;
	return false;
}

/* Async-signal-safe: frees and allocates nothing. dp_late_stop_reap() handles threads that have ended. */
bool dp_late_stop_inspect(void)
{
	const int saved = errno;
	bool later = changing;
	for (size_t i = 0; i < nstrays && !changing; i++)
		later |= may_stand_later(&stray[i]);
	errno = saved;
	return later;
}

/* True: it is still to be released. */
static bool stays_stray(const struct stray *s)
{
	struct dp_held h = {.tid = s->tid, .pid = s->pid, .seized = true};
	const struct dp_stop stop = dp_stop_wait(h.tid, 0);
	if (stop.kind == DP_STOP_NONE) /* a command of ours is waited for although it is not traced any more */
		return s->tid != s->pid || is_ours(s->tid);
	if (s->execs && stop.kind != DP_STOP_EXEC)
		return false;
	if (dp_held_take(&h, stop) && ptrace(PTRACE_DETACH, h.tid, NULL, (void *)(long)h.pending_signal) == 0)
		return false;
	return !h.exited;
}

static void reap_strays(void)
{
	size_t kept = 0;
	for (size_t i = 0; i < nstrays; i++) { /* one that executes a program is added on the way */
		const struct stray one = stray[i];
		if (one.tid && stays_stray(&one))
			stray[kept++] = one;
	}
	nstrays = kept;
	if (kept)
		return;
	dp_watchdog_no_late_stops();
	free(stray);
	stray = NULL;
	stray_capacity = 0;
}

void dp_late_stop_reap(void)
{
	changing = 1;
	reap_strays();
	changing = 0;
}

bool dp_late_stop_is_left(void)
{
	return nstrays > 0;
}

void dp_late_stop_settle(uint64_t limit_ns)
{
	uint64_t deadline = dp_now_ns() + limit_ns;
	dp_late_stop_reap();
	while (nstrays && dp_now_ns() < deadline) {
		dp_stop_sleep(stray[0].tid, dp_now_ns() + STRAY_NS);
		dp_late_stop_reap();
	}
}

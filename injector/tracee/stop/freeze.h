/* SPDX-License-Identifier: MIT */
/* Stops of single threads, for freeze, borrow and launch. Private to the ptrace half of injector/. */
#ifndef DP_INJECTOR_TRACEE_STOP_FREEZE_H
#define DP_INJECTOR_TRACEE_STOP_FREEZE_H

#include "injector/tracee/tracee.h"

#include <signal.h>

/*
 * TRACESYSGOOD is for safety: if a tracer dies between a system-call stop and its wait, the kernel sends the stop's code to the
 * thread as a signal. With this option that is 0x85, which the kernel rejects; without it, a deadly SIGTRAP. TRACEEXEC reports an
 * exec by the program.
 */
#define DP_SEIZE_OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC)

enum dp_stop_kind {
	DP_STOP_NONE,    /* still running */
	DP_STOP_TRAP,    /* the stop of PTRACE_INTERRUPT */
	DP_STOP_GROUP,   /* the same in a job-stopped process */
	DP_STOP_SYSCALL, /* PTRACE_SYSCALL: entry or exit */
	DP_STOP_SIGNAL,  /* about to receive `sig` */
	DP_STOP_EXEC,
	DP_STOP_EXITED, /* gone (and reaped, unless it is our own child) */
};
struct dp_stop {
	enum dp_stop_kind kind;
	int sig;
};
#define DP_FOREVER UINT64_MAX
/* Waits until `deadline_ns` for a stop of a traced thread (0: polls once). The stop is not consumed: see freeze_stop.c. */
struct dp_stop dp_stop_wait(pid_t tid, uint64_t deadline_ns);
/* The same, but sleeps at once: for a thread that is not expected to stop within microseconds. */
struct dp_stop dp_stop_sleep(pid_t tid, uint64_t deadline_ns);

/*
 * Reaps a child or traced thread that has ended; false if it has not. Always use this for traced threads: for them the kernel
 * reports stops too, whatever the caller asked for, and a consumed stop is never reported again. Async-signal-safe.
 */
bool dp_stop_reap(pid_t tid, siginfo_t *ret);
/* The same for one that was killed: waits for its end. */
void dp_stop_await_end(pid_t pid);

/* Makes `h` a held thread from a stop: registers, pending signal, -EINTR turned into a restart (eintr.c). False if it died. */
bool dp_held_take(struct dp_held *h, struct dp_stop stop);
/* Releases a stopped thread with its registers and its pending signal. */
void dp_held_release(struct dp_held *h);
/*
 * For a thread of ours at DP_STOP_EXITED or DP_STOP_EXEC: it, or its id, is gone. A program that it has executed is let go: its
 * registers must not become those of the old one.
 */
void dp_held_gone(struct dp_held *h, struct dp_stop stop);
/* Seizes one thread; *gone if it has ended. */
struct dp_error *dp_held_seize(const struct dp_process *p, pid_t tid, bool *gone) DP_MUST_CHECK;
/* Why a thread did not stop: DP_TAG_VFORK, DP_TAG_UNSTOPPABLE, or DP_TAG_GONE. */
struct dp_error *dp_unstoppable(const struct dp_process *p, pid_t tid) DP_MUST_CHECK;

/*
 * Late stops. A thread that did not stop when asked cannot be detached either; it is released as soon as it stops.
 * dp_late_stop_settle() waits for that for a while. After it, every dp_mem_read() and every freeze checks (dp_late_stop_reap()),
 * and so does a timer's signal handler (dp_late_stop_inspect()): other work of ours may take long, and the thread must not stay
 * stopped meanwhile.
 */
void dp_late_stop_add(pid_t tid, pid_t pid);
void dp_late_stop_reap(void);
bool dp_late_stop_inspect(void);
bool dp_late_stop_is_left(void);
#define DP_SETTLE_NS UINT64_C(1000000000)
void dp_late_stop_settle(uint64_t limit_ns);

#endif

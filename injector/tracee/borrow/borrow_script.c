/* SPDX-License-Identifier: MIT */
/*
 * Makes several system calls on a borrowed thread, between one resume and one stop. The loop that makes them is part of the
 * borrower's code (boot.c); the table is in the target's memory.
 *
 * The thread runs freely meanwhile: this saves a stop at each call. After the last call, or the first that failed, it sets a mark
 * and waits for us briefly in a call that has no restart block (so the program's own interrupted call keeps its own). If the time
 * is up before that, it is stopped between two calls, so that no thread is held for long.
 *
 * If dynprobe dies, the thread finishes the table, waits, and restores itself as after a single call. Until it has stopped again,
 * the table's first word marks the table as in use, so that no other tool writes to it.
 */
#include "injector/tracee/borrow/boot.h"
#include "injector/tracee/borrow/borrow.h"
#include "injector/tracee/borrow/dispatch.h"
#include "injector/tracee/stop/freeze.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#define STEPS        33u /* in one table */
#define IN_USE       UINT64_C(0x6573752d6e69)
#define PENDING      INT64_MIN /* no system call returns this */
#define WAIT_NS      30000000
#define LATE_NS      UINT64_C(3000000000) /* for a call that does not return */
#define STEP_NS      1500u                /* of a call, roughly */
#define POLL_NS      10000                /* between the first polls, then longer: the thread may need this processor */
#define POLL_MOST_NS 100000

struct table {
	uint64_t in_use;
	struct timespec wait;
	struct dp_boot_step step[STEPS + 2]; /* plus the mark and the wait */
};
_Static_assert(sizeof(struct table) <= DP_SCRIPT_ROOM, "the table fits");

static uint64_t step_at(uint64_t room, size_t i)
{
	return room + offsetof(struct table, step) + i * sizeof(struct dp_boot_step);
}

static bool peek(const struct dp_borrow *b, uint64_t at, void *buf, size_t n)
{
	const struct iovec here = {buf, n}, there = {(void *)(uintptr_t)at, n};
	return process_vm_readv(b->h->tid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

static bool is_free(const struct dp_borrow *b, uint64_t room)
{
	uint64_t in_use = 0;
	return room && peek(b, room, &in_use, sizeof(in_use)) && !in_use;
}

static void set_free(const struct dp_process *p, uint64_t room)
{
	static const uint64_t none;
	dp_error_destroy(dp_mem_write(p, dp_addr_of(room), &none, sizeof(none)));
}

void dp_script_forget(const struct dp_process *p, uint64_t room)
{
	set_free(p, room);
}

/* ---- the table ------------------------------------------------------------------------------------------------------------ */

static struct dp_error *write_table(const struct dp_borrow *b, uint64_t room, const struct dp_step *step, size_t n)
{
	struct table t = {.in_use = IN_USE, .wait = {0, WAIT_NS}};
	for (size_t i = 0; i < n; i++) {
		t.step[i] = (struct dp_boot_step){.nr = (uint64_t)step[i].nr,
		                                  .minus_want = 0 - (uint64_t)step[i].want,
		                                  .result = PENDING,
		                                  .otherwise = step_at(room, n)};
		memcpy(t.step[i].args, step[i].args, sizeof(step[i].args));
	}
	const uint64_t never = 0 - (uint64_t)PENDING;
	t.step[n] = (struct dp_boot_step){SYS_getpid, {0}, never, PENDING, step_at(room, n + 1)};
	t.step[n + 1] = (struct dp_boot_step){SYS_pselect6, {0}, never, PENDING, 0};
	t.step[n + 1].args[4] = room + offsetof(struct table, wait);
	return dp_mem_write(&b->p, dp_addr_of(room), &t, step_at(room, n + 2) - room);
}

/*
 * Reads the results. A thread that was stopped right after a call has not stored the result yet; a call that would be restarted
 * has none.
 */
static struct dp_error *read_table(const struct dp_borrow *b, uint64_t room, const struct user_regs_struct *now,
                                   struct dp_step *step, size_t n)
{
	struct dp_boot_step was[STEPS];
	if (!peek(b, step_at(room, 0), was, n * sizeof(*was)))
		return dp_error(DP_TAG_GONE, "process %d (%s) ended or unmapped dynprobe's memory", b->p.pid, b->p.comm);
	const int64_t rax = (int64_t)now->rax;
	for (size_t i = 0; i < n; i++) {
		const bool behind = now->rip == b->boot.v + DP_BOOT_SCRIPT_CALL && now->rbx == step_at(room, i) &&
		                    !(rax <= -512 && rax >= -516);
		if (was[i].result == PENDING && behind)
			was[i].result = rax;
		step[i].made = was[i].result != PENDING;
		step[i].got = was[i].result;
	}
	return NULL;
}

/* ---- run and fetch --------------------------------------------------------------------------------------------------------- */

static struct dp_error *gone(struct dp_borrow *b)
{
	b->h->exited = true;
	return dp_error(DP_TAG_GONE, "process %d (%s) ended or called exec", b->p.pid, b->p.comm);
}

static bool resume(struct dp_borrow *b, uint64_t room)
{
	struct user_regs_struct r = b->h->regs;
	r.rip = b->boot.v + DP_BOOT_SCRIPT;
	r.rbx = step_at(room, 0);
	r.orig_rax = UINT64_MAX; /* the interrupted call must not restart here */
	return !ptrace(PTRACE_SETREGS, b->h->tid, NULL, &r) && !ptrace(PTRACE_CONT, b->h->tid, NULL, NULL);
}

/* Handles an unrequested stop. An error leaves the thread stopped. */
static struct dp_error *pass(struct dp_borrow *b, struct dp_stop stop)
{
	if (stop.kind == DP_STOP_EXITED || stop.kind == DP_STOP_EXEC) {
		dp_held_gone(b->h, stop);
		return gone(b);
	}
	const int sig = stop.kind == DP_STOP_SIGNAL ? stop.sig : 0;
	if (sig && sig != SIGSTOP)
		return sig == SIGSYS
		               ? dp_dispatch_refused(&b->p, b->h->tid)
		               : dp_remote_unfinished("signal %d interrupted dynprobe's system calls on thread %d of process %d",
		                                      sig, b->h->tid, b->p.pid);
	ptrace(PTRACE_CONT, b->h->tid, NULL, (void *)(long)sig); /* job-stopped: one more stop for each resume */
	return NULL;
}

/* Waits until the mark is set, or time is up. */
static struct dp_error *run(struct dp_borrow *b, uint64_t room, size_t n, uint64_t until_ns)
{
	const uint64_t late = dp_now_ns() + LATE_NS, end = until_ns < late ? until_ns : late;
	nanosleep(&(struct timespec){0, (long)(n * STEP_NS)}, NULL);
	for (long rest = POLL_NS;; rest = 2 * rest < POLL_MOST_NS ? 2 * rest : POLL_MOST_NS) {
		int64_t mark = PENDING;
		const struct dp_stop stop = dp_stop_wait(b->h->tid, 0);
		if (stop.kind == DP_STOP_SIGNAL && stop.sig != SIGSTOP)
			return NULL; /* all are blocked: it left our calls, or they failed badly */
		if (stop.kind != DP_STOP_NONE)
			DP_TRY(pass(b, stop));
		if (!peek(b, step_at(room, n) + offsetof(struct dp_boot_step, result), &mark, sizeof(mark)) || mark != PENDING ||
		    dp_now_ns() >= end)
			return NULL;
		nanosleep(&(struct timespec){0, rest}, NULL);
	}
}

static bool in_script(const struct dp_borrow *b, uint64_t rip)
{
	return rip - (b->boot.v + DP_BOOT_SCRIPT) < DP_BOOT_SCRIPT_END - DP_BOOT_SCRIPT;
}

/* Stops the thread where it is: *now. If we are too late, it is restoring itself or has done so, and continues. */
static struct dp_error *fetch(struct dp_borrow *b, struct user_regs_struct *now)
{
	const uint64_t deadline = dp_now_ns() + LATE_NS;
	for (;;) {
		ptrace(PTRACE_INTERRUPT, b->h->tid, NULL, NULL);
		const struct dp_stop stop = dp_stop_wait(b->h->tid, deadline);
		if (stop.kind == DP_STOP_NONE) {
			b->stuck = true;
			return dp_remote_stuck(b->p.pid, b->p.comm, b->h->tid);
		}
		if (stop.kind == DP_STOP_EXITED || stop.kind == DP_STOP_EXEC)
			return pass(b, stop);
		if (ptrace(PTRACE_GETREGS, b->h->tid, NULL, now) != 0)
			return gone(b);
		b->home = !in_script(b, now->rip);
		if (b->home || stop.kind == DP_STOP_TRAP || stop.kind == DP_STOP_GROUP)
			return NULL; /* after its self-restore it may have met a signal, which is delivered at its release */
		DP_TRY(pass(b, stop));
	}
}

static struct dp_error *run_table(struct dp_borrow *b, uint64_t room, struct dp_step *step, size_t n, uint64_t until_ns)
{
	struct user_regs_struct now;
	DP_TRY(write_table(b, room, step, n));
	if (!resume(b, room))
		return gone(b);
	DP_TRY(run(b, room, n, until_ns));
	DP_TRY(fetch(b, &now));
	DP_TRY(read_table(b, room, &now, step, n));
	set_free(&b->p, room);
	return NULL;
}

static struct dp_error *run_one(struct dp_borrow *b, struct dp_step *step)
{
	DP_TRY(dp_remote_syscall(b, step->nr, step->args, &step->got));
	step->made = true;
	return NULL;
}

struct dp_error *dp_remote_script(struct dp_borrow *b, uint64_t room, struct dp_step *step, size_t n, uint64_t until_ns,
                                  size_t *done)
{
	/* With all threads held it must not restore itself: in a launched command that would start the program. */
	const bool by_table = n > 1 && !b->frozen && is_free(b, room);
	*done = 0;
	while (*done < n) {
		const size_t most = by_table ? STEPS : 1, part = n - *done < most ? n - *done : most;
		DP_TRY(dp_borrow_check(b));
		DP_TRY(by_table ? run_table(b, room, step + *done, part, until_ns) : run_one(b, step + *done));
		size_t k = 0;
		while (k < part && step[*done + k].made && step[*done + k].got == step[*done + k].want)
			k++;
		*done += k;
		if (k < part || dp_now_ns() >= until_ns)
			break;
	}
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * Several system calls on a borrowed thread, between one resume and one stop. The loop that makes them is part of the borrower's
 * code (boot.c); the table is in the target's memory.
 *
 * The thread runs free meanwhile, for a stop at each of its calls is what is to be saved. Behind the last call, or the first that
 * failed, it makes a mark and waits a moment for us in a call that has no restart block (so an interrupted call of the
 * program's own keeps its). If time is up before, it is stopped between two calls: that is how nobody is held for long.
 *
 * Our own death: the thread finishes the table, waits its moment, and brings itself home as from a single call. While it may do
 * so nobody else writes to the table: the word in front says that it is in use, until the thread stands again.
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
#define PENDING      INT64_MIN /* the result of no system call */
#define WAIT_NS      30000000
#define LATE_NS      UINT64_C(3000000000) /* for a call that does not return */
#define STEP_NS      1500u                /* of a call, roughly */
#define POLL_NS      10000                /* between the first looks, then longer: the thread may need this very processor */
#define POLL_MOST_NS 100000

struct table {
	uint64_t in_use;
	struct timespec wait;
	struct dp_boot_step step[STEPS + 2]; /* and the mark, and the wait */
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
 * What has become of it. A thread that was stopped right behind a call has not noted the result yet; of a call that would be
 * restarted there is none.
 */
static struct dp_error *read_table(const struct dp_borrow *b, uint64_t room, const struct user_regs_struct *now,
                                   struct dp_step *step, size_t n)
{
	struct dp_boot_step was[STEPS];
	if (!peek(b, step_at(room, 0), was, n * sizeof(*was)))
		return dp_error(DP_TAG_GONE, "process %d (%s) ended or unmapped what was mapped into it", b->p.pid, b->p.comm);
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

/* ---- there and back ------------------------------------------------------------------------------------------------------- */

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
	r.orig_rax = UINT64_MAX; /* the call that the stop interrupted is not to be restarted here */
	return !ptrace(PTRACE_SETREGS, b->h->tid, NULL, &r) && !ptrace(PTRACE_CONT, b->h->tid, NULL, NULL);
}

/* A stop on the way that was not asked for. An error leaves the thread in it. */
static struct dp_error *pass(struct dp_borrow *b, struct dp_stop stop)
{
	if (stop.kind == DP_STOP_EXITED || stop.kind == DP_STOP_EXEC)
		return gone(b);
	const int sig = stop.kind == DP_STOP_SIGNAL ? stop.sig : 0;
	if (sig && sig != SIGSTOP)
		return sig == SIGSYS ? dp_dispatch_refused(&b->p, b->h->tid)
		                     : dp_error(DP_TAG_REMOTE, "signal %d met thread %d of process %d in our system calls", sig,
		                                b->h->tid, b->p.pid);
	ptrace(PTRACE_CONT, b->h->tid, NULL, (void *)(long)sig); /* job-stopped: one more stop for each resume */
	return NULL;
}

/* Until the mark is made, or time is up. */
static struct dp_error *run(struct dp_borrow *b, uint64_t room, size_t n, uint64_t until_ns)
{
	const uint64_t late = dp_now_ns() + LATE_NS, end = until_ns < late ? until_ns : late;
	nanosleep(&(struct timespec){0, (long)(n * STEP_NS)}, NULL);
	for (long rest = POLL_NS;; rest = 2 * rest < POLL_MOST_NS ? 2 * rest : POLL_MOST_NS) {
		int64_t mark = PENDING;
		const struct dp_stop stop = dp_stop_wait(b->h->tid, 0);
		if (stop.kind == DP_STOP_SIGNAL && stop.sig != SIGSTOP)
			return NULL; /* all are blocked: it is no longer at our calls, or they failed badly */
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

/* Stops it where it is: *now. If we come too late, it is on its way home or there, and is left to go on. */
static struct dp_error *fetch(struct dp_borrow *b, struct user_regs_struct *now)
{
	const uint64_t deadline = dp_now_ns() + LATE_NS;
	for (;;) {
		ptrace(PTRACE_INTERRUPT, b->h->tid, NULL, NULL);
		const struct dp_stop stop = dp_stop_wait(b->h->tid, deadline);
		if (stop.kind == DP_STOP_NONE) {
			b->stuck = true;
			return dp_error(DP_TAG_REMOTE, "a system call run in process %d (%s) did not return", b->p.pid,
			                b->p.comm);
		}
		if (stop.kind == DP_STOP_EXITED || stop.kind == DP_STOP_EXEC || ptrace(PTRACE_GETREGS, b->h->tid, NULL, now) != 0)
			return gone(b);
		b->home = !in_script(b, now->rip);
		if (b->home || stop.kind == DP_STOP_TRAP || stop.kind == DP_STOP_GROUP)
			return NULL; /* at home it may have met a signal, which is delivered when it is seen out */
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
	/* With all threads held none may go home: of a launched command it would be the start of the program. */
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

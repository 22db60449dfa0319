/* SPDX-License-Identifier: MIT */
/*
 * Borrows one thread for system calls; boot.c is the code it runs.
 *
 * Signals are the hard part: a signal delivered during a call would run its handler with foreign registers, and one that is taken
 * and sent again later loses its siginfo. So the thread's mask blocks all signals while it is borrowed; they stay pending, or go
 * to other threads as usual, and the kernel delivers them at the release, with the raw registers of the interrupted call in
 * place: pause() returns, exactly once. (SIGSTOP cannot be blocked: it is passed on, the thread keeps working for us inside the
 * job stop, and is stopped after the release.)
 *
 * The order protects against the tool's own death: the code is written before the thread enters it; the thread enters it before
 * its mask changes; at the end the mask is restored first, then the registers, then the code. At each point the self-restore or
 * the kernel's restart restores the thread. The code's page stays a private copy with identical content: it cannot be unmapped
 * from within itself.
 */
#include "injector/tracee/borrow/borrow.h"
#include "injector/tracee/borrow/boot.h"
#include "injector/tracee/borrow/dispatch.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"
#include "injector/tracee/proc/checks.h"
#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>

#define CALL_LIMIT_NS UINT64_C(3000000000)
#define LEFTOVERS     3u
#define HOME_NS       UINT64_C(1000000000)
#define HOME_TRIES    15
#define HOME_REST_NS  50000L /* doubled each time, 1.6 s in all */

#ifndef PTRACE_EVENTMSG_SYSCALL_ENTRY
#define PTRACE_EVENTMSG_SYSCALL_ENTRY 1
#endif

static struct dp_error *gone(const struct dp_borrow *b)
{
	return dp_error(DP_TAG_GONE, "process %d (%s) ended or called exec", b->p.pid, b->p.comm);
}

/* Sets the registers of a call; `rip` is in the boot code. */
static bool set_call(struct dp_borrow *b, uint64_t rip, long nr, const uint64_t args[6])
{
	struct user_regs_struct r = b->h->regs;
	r.rip = rip;
	r.orig_rax = UINT64_MAX; /* the interrupted call must not restart here */
	if (args) {
		r.rax = (uint64_t)nr;
		r.rdi = args[0];
		r.rsi = args[1];
		r.rdx = args[2];
		r.r10 = args[3];
		r.r8 = args[4];
		r.r9 = args[5];
	}
	return ptrace(PTRACE_SETREGS, b->h->tid, NULL, &r) == 0;
}

static bool set_mask(struct dp_borrow *b, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, b->h->tid, (void *)sizeof(mask), &mask) == 0;
}

static bool is_zero(const struct dp_borrow *b)
{
	static const uint8_t zeroes[DP_BOOT_SIZE];
	uint8_t bytes[DP_BOOT_SIZE];
	return dp_mem_read(&b->p, b->boot, bytes, sizeof(bytes)) == sizeof(bytes) && !memcmp(bytes, zeroes, sizeof(bytes));
}

/*
 * May a thread still be restoring itself through the code that a killed tool left there? This can be checked only with all
 * threads held; otherwise leave the code alone.
 */
static bool somebody_stands_in(const struct dp_borrow *b)
{
	if (is_zero(b))
		return false;
	for (size_t i = 0; b->frozen && i < b->frozen->n; i++) {
		const struct dp_held *h = &b->frozen->thread[i];
		if (h->regs.rip - b->boot.v < DP_BOOT_SIZE || dp_boot_returns(&b->p, b->boot, h->regs.rsp))
			return true;
	}
	return !b->frozen;
}

/*
 * Several tools may have been killed, leaving code at different places; a tool that works while threads run leaves it alone. All
 * threads are held during this search, so only the first few places are searched.
 */
static void wipe_leftovers(struct dp_borrow *b, const char *maps)
{
	static const uint8_t zeroes[DP_BOOT_SIZE];
	for (unsigned nth = 0; b->frozen && nth < LEFTOVERS; nth++) {
		if (!dp_boot_find(&b->p, maps, sizeof(zeroes), nth, &b->boot))
			break;
		if (!is_zero(b) && !somebody_stands_in(b))
			dp_error_destroy(dp_mem_write_text(&b->p, b->h->tid, b->boot, zeroes, sizeof(zeroes), NULL));
	}
	b->boot = dp_addr_of(0);
}

/* If the thread's calls are dispatched, uses only the range of addresses from which they are always made. */
static void confine(struct dp_borrow *b)
{
	uint64_t start, size;
	if (dp_dispatch_of(&b->p, b->h->tid, &start, &size) == DP_DISPATCH_INSIDE) {
		b->p.calls_start = start;
		b->p.calls_size = size;
	}
}

static struct dp_error *no_place(const struct dp_borrow *b)
{
	return b->p.calls_size ? dp_dispatch_refused(&b->p, b->h->tid)
	                       : dp_error(DP_TAG_NO_THREAD, "process %d (%s) has no %u unused bytes of executable memory",
	                                  b->p.pid, b->p.comm, DP_BOOT_SIZE);
}

/* Writes the boot code to the first usable place, and moves the thread into it. */
static struct dp_error *enter(struct dp_borrow *b, const char *maps)
{
	uint8_t code[DP_BOOT_SIZE];
	if (!dp_temp_mask_take(&b->p, b->h, &b->masks))
		return gone(b);
	dp_boot_build(&b->h->regs, b->masks.own, code);
	wipe_leftovers(b, maps);
	confine(b);
	for (unsigned nth = 0;; nth++) {
		if (!dp_boot_find(&b->p, maps, sizeof(code), nth, &b->boot)) {
			b->boot = dp_addr_of(0); /* the last one is somebody else's, not ours to clear */
			return no_place(b);
		}
		if (somebody_stands_in(b))
			continue;
		struct dp_error *err = dp_mem_write_text(&b->p, b->h->tid, b->boot, code, sizeof(code), NULL);
		if (!err)
			break;
		dp_error_destroy(err);
	}
	if (set_call(b, b->boot.v + DP_BOOT_RESTORE, 0, NULL) && set_mask(b, dp_dispatch_mask(&b->p, b->h->tid)))
		return NULL;
	return gone(b);
}

static bool suspend_seccomp(struct dp_borrow *b, bool on)
{
	long options = DP_SEIZE_OPTIONS | (on ? PTRACE_O_SUSPEND_SECCOMP : 0);
	b->suspended = on;
	return ptrace(PTRACE_SETOPTIONS, b->h->tid, NULL, (void *)options) == 0;
}

static struct dp_error *begin(struct dp_borrow *b, bool suspend)
{
	dp_auto_free char *maps = NULL;
	if (suspend && !suspend_seccomp(b, true))
		return dp_error_sys(DP_TAG_SECCOMP, "cannot suspend the seccomp filter of process %d (%s)", b->p.pid, b->p.comm);
	dp_rseq_abort(&b->p, b->h);
	if (b->p.known_maps) {
		struct dp_error *err = enter(b, b->p.known_maps);
		if (!err || err->tag != DP_TAG_NO_THREAD)
			return err;
		dp_error_destroy(err);
	}
	DP_TRY(dp_process_maps(&b->p, &maps));
	return enter(b, maps);
}

struct dp_error *dp_borrow_begin(const struct dp_process *p, struct dp_freeze *f, uint64_t limit_ns, bool suspend,
                                 struct dp_borrow **ret)
{
	struct dp_borrow *b = calloc(1, sizeof(*b));
	if (!b)
		return dp_error_nomem();
	b->p = *p;
	b->frozen = f;
	b->h = &b->own;
	dp_watchdog_start("a thread of the program");
	struct dp_error *err = f ? dp_choose_frozen(p, f, &b->h) : dp_choose_running(p, limit_ns, &b->own);
	if (err) {
		dp_watchdog_stop();
		free(b);
		return err;
	}
	b->p.alive = b->h->tid;
	err = begin(b, suspend);
	if (err)
		err = dp_error_wrap(err, "cannot borrow thread %d", b->h->tid);
	if (err)
		dp_error_destroy(dp_borrow_end(b, NULL));
	else
		*ret = b;
	return err;
}

/* Runs the thread to its next system-call stop. */
static struct dp_error *run(struct dp_borrow *b, uint64_t deadline)
{
	int sig = 0;
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, b->h->tid, NULL, (void *)(long)sig) != 0 && errno != ESRCH)
			return dp_error_sys(DP_TAG_SYS, "cannot resume thread %d of process %d", b->h->tid, b->p.pid);
		struct dp_stop stop = dp_stop_wait(b->h->tid, deadline);
		sig = 0;
		switch (stop.kind) {
		case DP_STOP_SYSCALL:
			return NULL;
		case DP_STOP_TRAP:
		case DP_STOP_GROUP: /* job-stopped: one more stop for each resume */
			continue;
		case DP_STOP_SIGNAL:
			sig = stop.sig;
			if (sig == SIGSTOP)
				continue;
			if (sig == SIGSYS) /* see dispatch.c: discarded with the call */
				return dp_dispatch_refused(&b->p, b->h->tid);
			return dp_remote_unfinished("signal %d interrupted dynprobe's system call on thread %d of process %d",
			                            sig, b->h->tid, b->p.pid);
		case DP_STOP_NONE:
			b->stuck = true;
			return dp_remote_stuck(b->p.pid, b->p.comm, b->h->tid);
		default:
			dp_held_gone(b->h, stop);
			return gone(b);
		}
	}
}

static bool at_entry(const struct dp_borrow *b)
{
	unsigned long msg = 0;
	return ptrace(PTRACE_GETEVENTMSG, b->h->tid, NULL, &msg) == 0 && msg == PTRACE_EVENTMSG_SYSCALL_ENTRY;
}

bool dp_borrow_lost(const struct dp_borrow *b)
{
	return b->stuck || b->home;
}

struct dp_error *dp_borrow_check(const struct dp_borrow *b)
{
	if (dp_borrow_lost(b))
		return dp_error(DP_TAG_NO_THREAD, "the borrowed thread of process %d (%s) resumed on its own",
		                b->p.pid, b->p.comm);
	return b->h->exited ? gone(b) : NULL;
}

struct dp_error *dp_remote_syscall(struct dp_borrow *b, long nr, const uint64_t args[6], int64_t *result)
{
	uint64_t deadline = dp_now_ns() + CALL_LIMIT_NS;
	DP_TRY(dp_borrow_check(b));
	if (!set_call(b, b->boot.v, nr, args))
		return gone(b);
	DP_TRY(run(b, deadline));
	if (at_entry(b)) /* always, except after a stop left over from before */
		DP_TRY(run(b, deadline));
	errno = 0;
	long value = ptrace(PTRACE_PEEKUSER, b->h->tid, (void *)offsetof(struct user_regs_struct, rax), NULL);
	if (errno == ESRCH) {
		b->h->exited = true;
		return gone(b);
	}
	*result = value;
	return NULL;
}

/* Restores mask, registers and code, in this order. */
static struct dp_error *leave(struct dp_borrow *b)
{
	static const uint8_t zeroes[DP_BOOT_SIZE];
	if (b->boot.v && !dp_temp_mask_give_back(&b->p, b->h, &b->masks))
		return NULL; /* it died, and its memory with it */
	if (ptrace(PTRACE_SETREGS, b->h->tid, NULL, &b->h->regs) != 0)
		return NULL;
	b->h->regs_changed = false;
	if (b->suspended)
		suspend_seccomp(b, false);
	return b->boot.v ? dp_mem_write_text(&b->p, b->h->tid, b->boot, zeroes, sizeof(zeroes), NULL) : NULL;
}

#define LEFT_MOST 16u
static __thread pid_t left[LEFT_MOST]; /* processes in which our code stayed */
static __thread size_t nleft;          /* of the last ones, if it is more than LEFT_MOST */

bool dp_borrow_has_left_code(pid_t pid)
{
	for (size_t i = 0; i < nleft && i < LEFT_MOST; i++)
		if (left[i] == pid)
			return true;
	return false;
}

/* A call that blocks for ever: the thread is released as soon as it can be stopped, and restores itself. The code stays. */
static void abandon(struct dp_borrow *b)
{
	left[nleft++ % LEFT_MOST] = b->p.pid;
	ptrace(PTRACE_INTERRUPT, b->h->tid, NULL, NULL);
	dp_late_stop_add(b->h->tid, b->h->pid);
	b->h->seized = false;
	b->h->exited = true;
}

/*
 * We were too late: the thread restored itself. Waits until it has left our code, then removes the code as usual; otherwise
 * leaves both alone.
 */
static struct dp_error *see_home(struct dp_borrow *b)
{
	static const uint8_t zeroes[DP_BOOT_SIZE];
	for (int tried = 0; tried < HOME_TRIES; tried++) {
		const struct dp_stop stop = dp_stop_wait(b->h->tid, dp_now_ns() + HOME_NS);
		if (stop.kind == DP_STOP_NONE || stop.kind == DP_STOP_EXEC || !dp_held_take(b->h, stop))
			break;
		b->h->regs_changed = false;
		if (b->h->regs.rip - b->boot.v >= DP_BOOT_SIZE && !dp_boot_returns(&b->p, b->boot, b->h->regs.rsp))
			return dp_mem_write_text(&b->p, b->h->tid, b->boot, zeroes, sizeof(zeroes), NULL);
		b->h->stopped = false; /* in our code, or in a handler that returns there */
		ptrace(PTRACE_CONT, b->h->tid, NULL, (void *)(long)b->h->pending_signal);
		nanosleep(&(struct timespec){0, HOME_REST_NS << tried}, NULL);
		/* If it has stopped already, an interrupt would stop it again at once, and it would make no progress. */
		if (dp_stop_wait(b->h->tid, 0).kind == DP_STOP_NONE)
			ptrace(PTRACE_INTERRUPT, b->h->tid, NULL, NULL);
	}
	if (!b->h->exited)
		abandon(b);
	return NULL;
}

struct dp_error *dp_borrow_end(struct dp_borrow *b, uint64_t *held_ns)
{
	struct dp_error *err = NULL;
	if (b->stuck)
		abandon(b);
	else if (b->home && !b->h->exited)
		err = see_home(b);
	else if (!b->h->exited)
		err = leave(b);
	if (!b->frozen)
		dp_held_release(&b->own);
	if (held_ns)
		*held_ns = dp_now_ns() - b->h->held_at_ns;
	dp_watchdog_stop();
	free(b);
	return err;
}

uint64_t dp_borrow_fs_base(const struct dp_borrow *b)
{
	return b->h->regs.fs_base;
}

pid_t dp_borrow_tid(const struct dp_borrow *b)
{
	return b->h->tid;
}

pid_t dp_borrow_ns_tid(const struct dp_borrow *b)
{
	return b->h->ns_tid;
}

struct dp_error *dp_remote_call(struct dp_borrow *b, const char *name, long nr, const uint64_t args[6], int64_t *result)
{
	int64_t got = 0;
	DP_TRY(dp_remote_syscall(b, nr, args, &got));
	if (got < 0 && got > -4096)
		return dp_remote_refused((int)-got, "%s failed in the target", name);
	*result = got;
	return NULL;
}

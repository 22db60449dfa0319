/* SPDX-License-Identifier: MIT */
/*
 * Runs C code on a thread of the target. agent/call.S is the other side.
 *
 * While the function runs, the thread is not stopped, but all its signals are blocked, except the one that glibc itself needs
 * (setuid sends it to every thread and waits, holding the lock that pthread_create needs). Its system calls are not stopped at:
 * on a busy machine each stop would cost a wait for a processor. Instead, after the function has returned, the thread notes that
 * in the frame and waits some milliseconds in a call without restart block; there it is stopped and restored exactly. If we are
 * too late, it is restoring itself or has done so, and is left alone.
 *
 * The order protects against our own death, as in borrow.c: first the frame, then the pc (its self-restore), then the mask, then
 * the call.
 */
#include "injector/tracee/borrow/call.h"

#include "injector/tracee/borrow/borrow.h"
#include "injector/tracee/borrow/borrow_xstate.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/temp_mask.h"
#include "injector/tracee/proc/proc.h"

#include "agent/call.h"

#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#define SIGSETXID 33 /* glibc's internal signal */
#define CALL_MASK (~(UINT64_C(1) << (SIGSETXID - 1)))
#define STAND_NS  UINT64_C(100000000) /* for a thread asked to stop: on a busy machine it first needs a processor */
#define WAIT_NS   UINT64_C(2000000)   /* agent/call.S */
#define POLL_NS   20000
#define WAITS     15u /* 30 ms: other threads of the program may need this one */

static struct dp_error *gone(const struct dp_process *p)
{
	return dp_error(DP_TAG_GONE, "process %d (%s) ended or called exec", p->pid, p->comm);
}

/* ---- the frame ---------------------------------------------------------------------------------------------------------- */

static void put(uint8_t *frame, unsigned at, uint64_t value)
{
	memcpy(frame + at, &value, sizeof(value));
}

static uint32_t xsave_kind(void)
{
	unsigned eax, ebx, ecx, edx;
	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
		return 0;
	return __get_cpuid_count(0xd, 1, &eax, &ebx, &ecx, &edx) && (eax & 2) ? 2 : 1;
}

/* Where the thread resumes on its own: what the kernel would have made of an interrupted call. */
static void put_resume(uint8_t *frame, const struct user_regs_struct *r)
{
	const int64_t rax = (int64_t)r->rax;
	const bool again = (int64_t)r->orig_rax >= 0 && (rax == -512 || rax == -513 || rax == -514 || rax == -516);
	put(frame, DP_CALL_RAX, !again ? r->rax : rax == -516 ? 219 /* restart_syscall */ : r->orig_rax);
	put(frame, DP_CALL_RIP, again ? r->rip - 2 : r->rip);
}

static struct dp_error *write_frame(const struct dp_process *p, const struct dp_held *h, const struct dp_call_site *site,
                                    uint64_t fn, const uint64_t args[4], uint64_t mask)
{
	const struct user_regs_struct *r = &h->regs;
	uint8_t frame[DP_CALL_SIZE] = {0};
	put(frame, DP_CALL_STATE, DP_CALL_ASKED | (uint64_t)xsave_kind() << 32);
	put(frame, DP_CALL_TID, (uint64_t)h->ns_tid);
	put(frame, DP_CALL_FN, fn);
	memcpy(frame + DP_CALL_ARG, args, 4 * sizeof(*args));
	put(frame, DP_CALL_ERRNO, site->errno_location);
	put(frame, DP_CALL_STACK, site->stack);
	memcpy(frame + DP_CALL_WAITS, &(const uint32_t){site->waits ? site->waits : WAITS}, sizeof(uint32_t));
	put(frame, DP_CALL_MASK, mask);
	put(frame, DP_CALL_FLAGS, r->eflags);
	put(frame, DP_CALL_RSP, r->rsp);
	put(frame, DP_CALL_RDI, r->rdi);
	put(frame, DP_CALL_RSI, r->rsi);
	put(frame, DP_CALL_RDX, r->rdx);
	put(frame, DP_CALL_R10, r->r10);
	put(frame, DP_CALL_R8, r->r8);
	put(frame, DP_CALL_R9, r->r9);
	put(frame, DP_CALL_RCX, r->rcx);
	put(frame, DP_CALL_R11, r->r11);
	put_resume(frame, r);
	return dp_mem_write(p, dp_addr_of(site->frame), frame, sizeof(frame));
}

static uint32_t frame_state(const struct dp_process *p, const struct dp_call_site *site)
{
	uint32_t state = 0;
	const struct iovec here = {&state, sizeof(state)},
	                   there = {(void *)(uintptr_t)(site->frame + DP_CALL_STATE), sizeof(state)};
	return process_vm_readv(p->alive, &here, 1, &there, 1, 0) == sizeof(state) ? state : DP_CALL_ASKED;
}

static void set_idle(const struct dp_process *p, const struct dp_call_site *site)
{
	const uint32_t idle = DP_CALL_IDLE;
	dp_error_destroy(dp_mem_write(p, dp_addr_of(site->frame + DP_CALL_STATE), &idle, sizeof(idle)));
}

/* ---- run and fetch -------------------------------------------------------------------------------------------------------- */

static bool set_rip(const struct dp_held *h, uint64_t rip)
{
	struct user_regs_struct r = h->regs;
	r.rip = rip;
	r.orig_rax = UINT64_MAX; /* the interrupted call must not restart here */
	return ptrace(PTRACE_SETREGS, h->tid, NULL, &r) == 0;
}

static bool set_mask(const struct dp_held *h, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, h->tid, (void *)sizeof(mask), &mask) == 0;
}

/* Restores mask and registers; the thread stays held. */
static struct dp_error *give_back(const struct dp_process *p, struct dp_held *h, const struct dp_temp_mask *masks)
{
	if (dp_temp_mask_give_back(p, h, masks) && ptrace(PTRACE_SETREGS, h->tid, NULL, &h->regs) == 0)
		return NULL;
	h->exited = true;
	return gone(p);
}

static bool in_call_code(const struct dp_call_site *site, uint64_t rip)
{
	return rip - site->entry < DP_CALL_CODE;
}

/* Handles a stop during the call. *sig: the signal to pass on; an error ends the call. */
static struct dp_error *pass(const struct dp_process *p, struct dp_held *h, struct dp_stop stop, int *sig)
{
	*sig = 0;
	switch (stop.kind) {
	case DP_STOP_SIGNAL:
		*sig = stop.sig;
		if (stop.sig == SIGSTOP || stop.sig == SIGSETXID)
			return NULL;
		return dp_error_advise(dp_error(DP_TAG_REMOTE, "signal %d interrupted dynprobe's call on thread %d of process %d",
		                                stop.sig, h->tid, p->pid),
		                       "use --sink ring, which calls no function of the program's libraries");
	case DP_STOP_EXITED:
	case DP_STOP_EXEC:
		dp_held_gone(h, stop);
		return gone(p);
	default: /* job-stopped: one more stop for each resume */
		return NULL;
	}
}

/* Waits until the function has returned. *late: it has not. */
static struct dp_error *run(const struct dp_process *p, struct dp_held *h, const struct dp_call_site *site, uint64_t deadline,
                            bool *late)
{
	int sig = 0;
	*late = false;
	if (ptrace(PTRACE_CONT, h->tid, NULL, NULL) != 0 && errno != ESRCH)
		return dp_error_sys(DP_TAG_SYS, "cannot resume thread %d of process %d", h->tid, p->pid);
	for (;;) {
		const struct dp_stop stop = dp_stop_wait(h->tid, 0);
		if (stop.kind != DP_STOP_NONE) {
			DP_TRY(pass(p, h, stop, &sig));
			ptrace(PTRACE_CONT, h->tid, NULL, (void *)(long)sig);
			continue;
		}
		if (frame_state(p, site) == DP_CALL_RETURNED)
			return NULL;
		*late = dp_now_ns() >= deadline;
		if (*late)
			return NULL;
		nanosleep(&(struct timespec){0, POLL_NS}, NULL);
	}
}

static uint64_t stand_ns(const struct dp_call_site *site)
{
	return site->waits ? site->waits * WAIT_NS : STAND_NS;
}

/*
 * The function has returned, or its time is up. A thread still in the code of the call is restored here; one elsewhere has
 * restored itself or is still in the function, and continues.
 */
static struct dp_error *fetch(const struct dp_process *p, struct dp_held *h, const struct dp_call_site *site,
                              const struct dp_temp_mask *masks)
{
	struct dp_held now = {.tid = h->tid, .ns_tid = h->ns_tid, .pid = h->pid, .seized = true, .held_at_ns = h->held_at_ns};
	ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL);
	const struct dp_stop stop = dp_stop_wait(h->tid, dp_now_ns() + stand_ns(site));
	const bool stands = stop.kind != DP_STOP_NONE && dp_held_take(&now, stop);
	if (stands && !now.pending_signal && in_call_code(site, now.regs.rip) && frame_state(p, site) == DP_CALL_RETURNED) {
		DP_TRY(give_back(p, h, masks));
		set_idle(p, site);
		return NULL;
	}
	dp_held_release(&now);
	dp_late_stop_settle(DP_SETTLE_NS);
	h->seized = h->stopped = false;
	h->exited = true;
	return NULL;
}

bool dp_call_over(const struct dp_process *p, const struct dp_call_site *site, pid_t *tid)
{
	uint64_t state[2] = {0};
	if (dp_mem_read(p, dp_addr_of(site->frame), state, sizeof(state)) != sizeof(state))
		return false;
	*tid = (pid_t)state[1];
	return (uint32_t)state[0] == DP_CALL_IDLE;
}

static struct dp_error *enter(const struct dp_process *p, struct dp_held *h, const struct dp_call_site *site)
{
	if (set_rip(h, site->entry + DP_CALL_HOME) && set_mask(h, CALL_MASK) && set_rip(h, site->entry))
		return NULL;
	h->exited = true;
	return gone(p);
}

struct dp_error *dp_call(const struct dp_process *p, struct dp_held *h, const struct dp_call_site *site, uint64_t fn,
                         const uint64_t args[4], uint64_t limit_ns, uint64_t *result)
{
	struct dp_temp_mask masks;
	uint64_t value = 0;
	pid_t earlier = 0;
	bool late = false;
	if (!dp_call_over(p, site, &earlier)) /* its thread restores itself from the frame */
		return !earlier ? gone(p)
		                : dp_error(DP_TAG_SINK, "thread %d of process %d (%s) is still in an earlier call of dynprobe",
		                           earlier, p->pid, p->comm);
	if (dp_xstate_size() > DP_CALL_XAREA)
		return dp_error(DP_TAG_SINK, "this processor's vector state does not fit in the frame of a call");
	if (!dp_temp_mask_take(p, h, &masks))
		return gone(p);
	dp_rseq_abort(p, h);
	DP_TRY(write_frame(p, h, site, fn, args, masks.own));
	DP_TRY(enter(p, h, site));
	struct dp_error *err = run(p, h, site, dp_now_ns() + limit_ns, &late);
	if (err) {
		if (!h->exited) /* a fault inside the function: the call ends here, and any lock it holds stays locked */
			dp_error_destroy(give_back(p, h, &masks));
		return err;
	}
	if (!late && dp_mem_read(p, dp_addr_of(site->frame + DP_CALL_RESULT), &value, sizeof(value)) != sizeof(value))
		err = gone(p);
	dp_error_destroy(fetch(p, h, site, &masks));
	if (err || late)
		return err ? err
		           : dp_error(DP_TAG_SINK,
		                      "a call on thread %d of process %d (%s) has not returned yet; it will finish on its own",
		                      h->tid, p->pid, p->comm);
	*result = value;
	return NULL;
}

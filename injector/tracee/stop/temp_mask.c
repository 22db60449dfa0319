/* SPDX-License-Identifier: MIT */
/*
 * Calls with a temporary signal mask: sigsuspend, ppoll, pselect6, epoll_pwait and the like.
 *
 * While such a call waits, the thread's mask is the call's; the kernel saves the thread's own mask and restores it after the
 * call. A tracer cannot restore that state: PTRACE_SETSIGMASK makes the kernel forget the saved mask, and so does every return to
 * user code. So we set the thread's own mask and let the call restart, which sets its mask again. For a signal that the thread
 * itself blocks this is exact: it stays pending until the call lets it through. But a signal that only the call blocks would be
 * delivered at once, and end the call with an EINTR that it could not have returned on its own. For such calls rip is moved back
 * to the program's own syscall instruction, which runs after the handler, as if the signal had come just before the call. The
 * exception: if a signal is pending that does end the call, that signal wins.
 */
#include "injector/tracee/stop/temp_mask.h"
#include "injector/tracee/proc/proc.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>

#define RESTARTS UINT64_C(-514) /* ERESTARTNOHAND: what all of them return, or what eintr.c made of their EINTR */

bool dp_temp_mask_waits(const struct dp_held *h)
{
	if (!h->in_syscall_stop)
		return false;
	switch (h->regs.orig_rax) {
	case SYS_rt_sigsuspend:
		return true;
	case SYS_ppoll:
		return h->regs.r10 != 0;
	case SYS_epoll_pwait:
	case 441: /* epoll_pwait2 */
	case 426: /* io_uring_enter */
		return h->regs.r8 != 0;
	case SYS_pselect6:
	case 333: /* io_pgetevents */
		return h->regs.r9 != 0;
	default:
		return false;
	}
}

bool dp_temp_mask_take(const struct dp_process *p, const struct dp_held *h, struct dp_temp_mask *ret)
{
	*ret = (struct dp_temp_mask){0};
	if (ptrace(PTRACE_GETSIGMASK, h->tid, (void *)sizeof(ret->own), &ret->own) != 0)
		return false;
	if (!dp_temp_mask_waits(h) || h->regs.rax != RESTARTS || h->pending_signal)
		return true;
	ret->mask = dp_proc_mask(p->pid, h->tid, "SigBlk");
	ret->held_back = ret->mask & ~ret->own;
	return true;
}

/* Will a pending signal end the call at once? One with a handler, and blocked by neither mask. */
static bool is_ended(const struct dp_process *p, const struct dp_held *h, const struct dp_temp_mask *m)
{
	const uint64_t pending = dp_proc_mask(p->pid, h->tid, "SigPnd") | dp_proc_mask(p->pid, h->tid, "ShdPnd");
	return pending & ~m->mask & ~m->own & dp_proc_mask(p->pid, h->tid, "SigCgt");
}

bool dp_temp_mask_give_back(const struct dp_process *p, struct dp_held *h, const struct dp_temp_mask *m)
{
	uint64_t own = m->own;
	if (m->held_back && h->regs.rax == RESTARTS && !is_ended(p, h, m)) {
		h->regs.rip -= 2;
		h->regs.rax = h->regs.orig_rax;
		h->regs.orig_rax = UINT64_MAX;
	}
	return ptrace(PTRACE_SETSIGMASK, h->tid, (void *)sizeof(own), &own) == 0;
}

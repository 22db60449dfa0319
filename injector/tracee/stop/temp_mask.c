/* SPDX-License-Identifier: MIT */
/*
 * Calls that wait with a mask of the moment: sigsuspend, ppoll, pselect6, epoll_pwait and what is like them.
 *
 * While such a call waits, the thread's mask is the call's; the kernel has put the thread's own aside and brings it back when the
 * call is over. That state cannot be restored: a tracer who sets a mask makes the kernel forget that there were two
 * (PTRACE_SETSIGMASK), and so does every return to the program. What we give back is therefore the thread's own mask, and a call
 * that begins anew and takes its mask again. For a signal that the thread itself has blocked that is exact: it stays pending
 * until the call lets it through. One that only the call holds back, though, would be delivered at once, and end the call with an
 * EINTR that it could not have given by itself. Then the call is made anew by the program's own instruction, behind the handler,
 * as if the signal had come just before it. Unless one has come that does end the call: that one wins.
 */
#include "injector/tracee/stop/temp_mask.h"
#include "injector/tracee/proc/proc.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>

#define RESTARTS UINT64_C(-514) /* ERESTARTNOHAND: what all of them answer, or what was made of their EINTR (eintr.c) */

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

/* Will a signal end the call at once? One with a handler that nobody holds back. */
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

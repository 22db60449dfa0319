/* SPDX-License-Identifier: MIT */
/*
 * System calls that a ptrace stop interrupts for good.
 *
 * Most blocked calls answer a stop with one of the kernel's restart codes (-512 .. -516): the program never sees it. A few
 * return plain -EINTR, which the kernel hands to the program although no signal came. At the stop we still see it in rax and
 * turn it into -514 (ERESTARTNOHAND): "again, unless a handler runs now", so that a real signal still interrupts the call.
 * (Winding rip back by two would swallow the real one.) A call that restarts begins its timeout anew; that is why threads in
 * calls with one are not borrowed. A tool that is killed between the stop and its look at rax leaves the -EINTR to the program,
 * as SIGSTOP and SIGCONT would. close() is not in the list: after its -EINTR the descriptor is gone.
 *
 * A second source: a signal that the process ignores (SIGCHLD by default, for one) wakes nobody, unless the thread that it is
 * sent to is traced, for then its tracer may want to know. If that thread stands, the kernel has another one take the signal, and
 * where that one is not traced itself, nobody sees its -EINTR. Signals of the process are sent to its leader, and those of
 * children to the thread that started them. So such a thread is taken behind the others and let go before them (freeze.c), and is
 * not borrowed where another one can be (borrow_choose.c).
 */
#include "injector/eintr.h"

#include <errno.h>
#include <sys/syscall.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#define EXT_ARG 8u /* IORING_ENTER_EXT_ARG: the call may carry a timeout */

#define ERESTARTNOHAND 514

static enum dp_eintr timed_if(bool timed)
{
	return timed ? DP_EINTR_TIMED : DP_EINTR_PLAIN;
}

enum dp_eintr dp_eintr_class(long nr, const uint64_t args[6])
{
	switch (nr) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return timed_if((int)args[3] >= 0);
	case SYS_epoll_pwait2:
		return timed_if(args[3] != 0);
	case SYS_semop:
		return DP_EINTR_PLAIN;
	case SYS_semtimedop:
		return timed_if(args[3] != 0);
	case SYS_rt_sigtimedwait:
		return timed_if(args[2] != 0);
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return timed_if(args[4] != 0);
	case SYS_io_uring_enter:
		return timed_if((args[3] & EXT_ARG) != 0);
	case SYS_accept: /* with SO_RCVTIMEO or SO_SNDTIMEO set */
	case SYS_accept4:
	case SYS_connect:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
		return DP_EINTR_SOCKET;
	default:
		return DP_EINTR_NEVER;
	}
}

static enum dp_eintr class_of(const struct user_regs_struct *r)
{
	const uint64_t args[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
	return (int64_t)r->orig_rax < 0 ? DP_EINTR_NEVER : dp_eintr_class((long)r->orig_rax, args);
}

bool dp_eintr_mend(struct user_regs_struct *regs)
{
	if ((int64_t)regs->rax != -EINTR || class_of(regs) == DP_EINTR_NEVER)
		return false;
	regs->rax = (uint64_t)(int64_t)-ERESTARTNOHAND;
	return true;
}

bool dp_eintr_mended(const struct user_regs_struct *regs)
{
	return (int64_t)regs->rax == -ERESTARTNOHAND && class_of(regs) != DP_EINTR_NEVER;
}

bool dp_eintr_timed(const struct user_regs_struct *regs)
{
	enum dp_eintr class = class_of(regs);
	return dp_eintr_mended(regs) && (class == DP_EINTR_TIMED || class == DP_EINTR_SOCKET);
}

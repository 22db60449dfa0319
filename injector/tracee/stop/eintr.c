/* SPDX-License-Identifier: MIT */
/*
 * System calls that a ptrace stop interrupts for good.
 *
 * Most blocked calls return one of the kernel's restart codes (-512 .. -516) at a stop, and the program never sees it. A few
 * return plain -EINTR, which the kernel passes to the program although no signal came. At the stop it is still in rax, and we
 * turn it into -514 (ERESTARTNOHAND): "restart, unless a handler runs now", so that a real signal still interrupts the call.
 * (Moving rip back by two would swallow the real one.) A restarted call begins its timeout anew; that is why threads in calls
 * with a timeout are not borrowed. If the tool is killed between the stop and its look at rax, the program gets the -EINTR, as
 * after SIGSTOP and SIGCONT. close() is not in the list: after its -EINTR the descriptor is gone.
 *
 * tests/unit/injector/test_eintr_every.c checks the list against the kernel, for all calls that can be made to block there, with
 * and without timeouts. For sockets the rule is in one place, sock_intr_errno() in the kernel's include/net/sock.h: -EINTR if
 * SO_RCVTIMEO or SO_SNDTIMEO is set, so every call is listed that can reach a socket. copy_file_range() cannot, and tee() and
 * vmsplice() take pipes only. Known from the kernel's source alone: tcdrain(), and what older kernels return. Not listed: -EINTR
 * that a driver or a FUSE server returns from other calls, and io_submit(), which succeeds, while the -EINTR of a request that
 * blocked in it becomes that request's result.
 *
 * A second source: a signal that the process ignores (SIGCHLD by default, for one) wakes no thread, unless the thread it is sent
 * to is traced, since the tracer may want to know. If that thread is stopped, the kernel gives the signal to another thread; if
 * that one is untraced, its -EINTR is not seen by us. Signals to the process go to its leader, and those from children to the
 * thread that started them. So these threads are stopped after the others and released before them (freeze.c), and are borrowed
 * only if no other thread can be (borrow_choose.c).
 */
#include "injector/tracee/stop/eintr.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#define KVM_RUN    0xae80u     /* from linux/kvm.h */
#define NOTIF_RECV 0xc0502100u /* from linux/seccomp.h */
#define EXT_ARG    8u          /* IORING_ENTER_EXT_ARG: the call may carry a timeout */
#define SHIFTS     0x28u       /* FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE: repeated, they act twice */

#define ERESTARTNOHAND 514

static enum dp_eintr timed_if(bool timed)
{
	return timed ? DP_EINTR_TIMED : DP_EINTR_PLAIN;
}

static enum dp_eintr plain_if(bool plain)
{
	return plain ? DP_EINTR_PLAIN : DP_EINTR_NEVER;
}

static bool ioctl_ends(uint32_t request, uint64_t arg)
{
	switch (request) {
	case KVM_RUN: /* the guest resumes where it was, and a signal that the call lets in ends it again */
		return true;
	case TCSBRK: /* tcdrain(). With 0 it sends a break, and does not tell whether it did */
		return arg != 0;
	case NOTIF_RECV: /* before Linux 6.6 */
		return true;
	default:
		return false;
	}
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
	case SYS_preadv2: /* without an offset */
	case SYS_pwritev2:
	case SYS_sendfile: /* one end may be such a socket */
	case SYS_splice:
		return DP_EINTR_SOCKET;
	case SYS_fallocate: /* hugetlbfs, and tmpfs on older kernels: allocated pages stay, or have been taken back */
		return plain_if(!(args[1] & SHIFTS));
	case SYS_ioctl:
		return plain_if(ioctl_ends((uint32_t)args[1], args[2]));
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

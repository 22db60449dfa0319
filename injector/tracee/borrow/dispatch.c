/* SPDX-License-Identifier: MIT */
/*
 * Syscall User Dispatch (prctl(PR_SET_SYSCALL_USER_DISPATCH), Linux 5.11). The kernel does not make such a thread's system calls
 * but sends them to the program's SIGSYS handler, unless they come from one range of addresses, or a byte of the program, the
 * selector, allows them. Wine uses it. The kernel's documentation: admin-guide/syscall-user-dispatch.rst.
 *
 * A call of ours would go to that handler as well, and, since all signals are blocked in a borrowed thread, end the program. So
 * such a thread is borrowed only if the answer cannot change: from within the range; or with all threads held, if the selector
 * allows calls. Such a program is not probed: a hit may make a system call, and it is unknown in advance in which thread.
 *
 * Only a stopped thread can be asked (PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, Linux 6.4); /proc does not tell. Programs that use
 * it handle SIGSYS, so in others no thread is stopped for this. Kernels before 6.4 do not answer. There, if the program handles
 * SIGSYS, that signal is not blocked in a borrowed thread: the thread stops at the signal, which is discarded with the call.
 */
#include "injector/tracee/borrow/dispatch.h"
#include "injector/tracee/proc/proc.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>

#ifndef PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG
#define PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211
#endif
#define ON   1
#define OPEN 0 /* SYSCALL_DISPATCH_FILTER_ALLOW */

struct config { /* struct ptrace_sud_config */
	uint64_t mode, selector, offset, len;
};

static bool ask(pid_t tid, struct config *ret)
{
	*ret = (struct config){0};
	return !ptrace(PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, tid, (void *)sizeof(*ret), ret);
}

enum dp_dispatch dp_dispatch_of(const struct dp_process *p, pid_t tid, uint64_t *start, uint64_t *size)
{
	struct config c;
	uint8_t selector = OPEN + 1;
	if (!ask(tid, &c) || c.mode != ON)
		return DP_DISPATCH_NONE;
	if (start)
		*start = c.offset;
	if (size)
		*size = c.len;
	if (c.selector && dp_mem_read(p, dp_addr_of(c.selector), &selector, 1) == 1 && selector == OPEN)
		return DP_DISPATCH_OPEN;
	return c.len ? DP_DISPATCH_INSIDE : DP_DISPATCH_ALL;
}

bool dp_dispatch_possible(const struct dp_process *p, pid_t tid)
{
	return dp_proc_mask(p->pid, tid, "SigCgt") & UINT64_C(1) << (SIGSYS - 1);
}

uint64_t dp_dispatch_mask(const struct dp_process *p, pid_t tid)
{
	struct config ignored;
	const bool silent = !ask(tid, &ignored) && errno == EIO && dp_dispatch_possible(p, tid);
	return silent ? ~(UINT64_C(1) << (SIGSYS - 1)) : UINT64_MAX;
}

struct dp_error *dp_dispatch_refused(const struct dp_process *p, pid_t tid)
{
	return dp_error(DP_TAG_DISPATCH,
	                "thread %d of process %d (%s) has its system calls dispatched to a handler of the program", tid, p->pid,
	                p->comm);
}

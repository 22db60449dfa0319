/* SPDX-License-Identifier: MIT */
/*
 * Finds processes that share the target's memory without being threads of it: made by clone(CLONE_VM) without CLONE_THREAD, as
 * vfork() does. The kernel has no list of them; kcmp(2) compares the memory of two processes. Where it is refused (another user's
 * process, a kernel without it) the answer is no. Kernel threads that use a process's memory for a while (io_uring's before 5.12,
 * vhost's before 6.4) are skipped: they execute none of its text.
 */
#include "injector/tracee/proc/sharers.h"
#include "injector/tracee/proc/proc.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 1000000L

static bool is_kernel_thread(pid_t pid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(pid, 0, &stat) && (stat.flags & DP_PF_KTHREAD);
}

struct search {
	const struct dp_process *p;
	pid_t found;
};

static bool compare(pid_t pid, void *data)
{
	struct search *s = data;
	if (pid != s->p->pid && !syscall(SYS_kcmp, pid, s->p->alive, KCMP_VM, 0, 0) && !is_kernel_thread(pid))
		s->found = pid;
	return !s->found;
}

pid_t dp_sharer(const struct dp_process *p)
{
	struct search s = {.p = p};
	dp_proc_each(compare, &s);
	return s.found;
}

pid_t dp_sharer_stays(const struct dp_process *p, uint64_t limit_ns)
{
	const uint64_t until = dp_now_ns() + limit_ns;
	pid_t pid;
	while ((pid = dp_sharer(p)) && dp_now_ns() < until)
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	return pid;
}

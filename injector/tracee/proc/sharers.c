/* SPDX-License-Identifier: MIT */
/*
 * Finds processes that share the target's memory without being threads of it: made by clone(CLONE_VM) without CLONE_THREAD, as
 * vfork() does. The kernel has no list of them; kcmp(2) compares the memory of two processes. Where it is refused (another user's
 * process, a kernel without it) the answer is no. Kernel threads that use a process's memory for a while (io_uring's before 5.12,
 * vhost's before 6.4) are skipped: they execute none of its text.
 */
#include "injector/tracee/proc/sharers.h"
#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_kernel_thread(pid_t pid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(pid, 0, &stat) && (stat.flags & DP_PF_KTHREAD);
}

pid_t dp_sharer(const struct dp_process *p)
{
	dp_auto_closedir DIR *proc = opendir("/proc");
	for (const struct dirent *e; proc && (e = readdir(proc));) {
		const pid_t pid = (pid_t)atoi(e->d_name);
		if (pid > 0 && pid != p->pid && !syscall(SYS_kcmp, pid, p->alive, KCMP_VM, 0, 0) && !is_kernel_thread(pid))
			return pid;
	}
	return 0;
}

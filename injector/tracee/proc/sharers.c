/* SPDX-License-Identifier: MIT */
/*
 * Processes that run in the target's memory without being threads of it: clone(CLONE_VM) without CLONE_THREAD, vfork() for one.
 * No list of the kernel's names them; kcmp(2) tells of two processes whether their memory is one. Where it may not be asked
 * (another user's process, a kernel without it) the answer is no. A kernel thread that works in a process's memory for a while
 * (io_uring's before 5.12, vhost's before 6.4) executes none of its text.
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

/* SPDX-License-Identifier: MIT */
#include "injector/tracee/proc/named.h"

#include "base/path.h"
#include "injector/tracee/proc/proc.h"

#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The executable's name, also of one that was replaced while it ran; empty if unknown. */
static void exe_name(pid_t pid, char *ret, size_t size)
{
	static const char gone[] = " (deleted)";
	char link[32], path[4096];
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	const ssize_t got = readlink(link, path, sizeof(path) - 1);
	size_t n = got > 0 ? (size_t)got : 0;
	path[n] = '\0';
	if (n > strlen(gone) && !strcmp(path + n - strlen(gone), gone))
		path[n - strlen(gone)] = '\0';
	snprintf(ret, size, "%s", dp_path_last(path));
}

/* Its first thread may have ended before the others. */
static bool has_threads(pid_t pid)
{
	struct dp_tids tids;
	const bool known = dp_proc_tids(pid, &tids);
	if (known)
		free(tids.tid);
	return known && tids.n > 1;
}

static bool is_program(pid_t pid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(pid, 0, &stat) && !(stat.flags & DP_PF_KTHREAD) && (stat.state != 'Z' || has_threads(pid));
}

bool dp_proc_is_named(pid_t pid, const char *name)
{
	char exe[256], comm[64];
	exe_name(pid, exe, sizeof(exe));
	dp_proc_comm(pid, comm, sizeof(comm));
	return (!strcmp(comm, name) || !strcmp(exe, name)) && is_program(pid);
}

bool dp_proc_is_vfork_child(pid_t pid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(pid, 0, &stat) && stat.ppid && !syscall(SYS_kcmp, pid, stat.ppid, KCMP_VM, 0, 0);
}

bool dp_proc_executes(pid_t pid, const char *path)
{
	char link[32];
	struct stat own, file;
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	return !stat(link, &own) && !stat(path, &file) && own.st_dev == file.st_dev && own.st_ino == file.st_ino;
}

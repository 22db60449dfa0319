/* SPDX-License-Identifier: MIT */
#include "injector/tracee/exec/exec_named.h"

#include "base/path.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/tracee.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define COMM_MAX  15u
#define FEW       50u
#define SHORT_NS  20000
#define MOMENT_NS 1000000

bool dp_exec_locks_early(void)
{
	static int known = -1;
	unsigned major, minor;
	struct utsname u;
	if (known < 0)
		known = !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 && 1000 * major + minor < 6008;
	return known;
}

static bool has_ended(const struct dp_exec_start *start)
{
	struct dp_task_stat stat;
	return !dp_proc_stat(start->pid, start->tid, &stat) || stat.state == 'Z' || stat.state == 'X';
}

bool dp_exec_await_call(const struct dp_exec_start *start, uint64_t ns, struct dp_proc_call *ret)
{
	const uint64_t until = dp_now_ns() + ns;
	for (unsigned tried = 0;; tried++) {
		dp_proc_call(start->pid, start->tid, ret);
		if (ret->nr >= 0)
			return true;
		if (dp_now_ns() > until || has_ended(start))
			return false;
		nanosleep(&(struct timespec){.tv_nsec = tried < FEW ? SHORT_NS : MOMENT_NS}, NULL);
	}
}

/* The call's path, as typed. False: it is no exec, or cannot be read. */
static bool read_name(const struct dp_exec_start *start, const struct dp_proc_call *call, char name[PATH_MAX])
{
	const struct dp_process p = {.pid = start->pid, .alive = start->tid};
	if (call->nr != SYS_execve && call->nr != SYS_execveat)
		return false;
	const size_t n = dp_mem_read(&p, dp_addr_of(call->args[call->nr == SYS_execveat]), name, PATH_MAX);
	return n && memchr(name, 0, n);
}

bool dp_exec_stat_named(const struct dp_exec_start *start, struct stat *ret)
{
	struct dp_proc_call call;
	char name[PATH_MAX], path[PATH_MAX + 64];
	if (!dp_exec_await_call(start, DP_EXEC_WAIT_NS, &call) || !read_name(start, &call, name))
		return false;
	if (*name == '/')
		snprintf(path, sizeof(path), "/proc/%d/root%s", start->tid, name);
	else if (call.nr == SYS_execve || (int)call.args[0] == AT_FDCWD)
		snprintf(path, sizeof(path), "/proc/%d/cwd/%s", start->tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/fd/%d%s%s", start->tid, (int)call.args[0], *name ? "/" : "", name);
	return !stat(path, ret);
}

static bool stat_exe(pid_t pid, struct stat *ret)
{
	char exe[32];
	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	return !stat(exe, ret);
}

void dp_exec_note(struct dp_exec_start *start)
{
	struct stat st;
	if (stat_exe(start->pid, &st))
		start->before = (struct dp_exec_file){st.st_dev, st.st_ino};
	if (!fstat(start->fd, &st))
		start->file = (struct dp_exec_file){st.st_dev, st.st_ino};
}

bool dp_exec_is_over(const struct dp_exec_start *start)
{
	const struct dp_exec_file *before = &start->before;
	struct stat st;
	return !before->ino || !stat_exe(start->pid, &st) || st.st_dev != before->dev || st.st_ino != before->ino;
}

bool dp_exec_is_file(const struct dp_exec_start *start, const char *path)
{
	struct stat own, other;
	return !fstat(start->fd, &own) && !stat(path, &other) && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

static bool is_any(const char *path, const char *const *name, size_t n)
{
	const char *last = dp_path_last(path);
	const bool long_one = strlen(last) > COMM_MAX;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(last, name[i]) || (long_one && strlen(name[i]) == COMM_MAX && !strncmp(last, name[i], COMM_MAX)))
			return true;
	return false;
}

bool dp_exec_is_named(const struct dp_exec_start *start, const char *const *name, size_t n)
{
	struct dp_proc_call call;
	char link[32], path[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", start->fd);
	const ssize_t got = readlink(link, path, sizeof(path) - 1);
	path[got > 0 ? got : 0] = '\0';
	if (is_any(path, name, n))
		return true;
	if (dp_exec_locks_early())
		return false;
	/* Rather one too many, which is seen, than one too few. */
	return !dp_exec_await_call(start, DP_EXEC_WAIT_NS, &call) || (read_name(start, &call, path) && is_any(path, name, n));
}

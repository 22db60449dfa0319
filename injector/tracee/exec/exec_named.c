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
#define MOMENT_NS 100000

bool dp_exec_locks_early(void)
{
	static int known = -1;
	unsigned major, minor;
	struct utsname u;
	if (known < 0)
		known = !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 && 1000 * major + minor < 6008;
	return known;
}

/* The kernel has asked, but the thread does not wait yet: its call is not known. */
static bool is_under_way(const struct dp_exec_start *start)
{
	struct dp_buf text;
	dp_buf_init(&text);
	const bool is = dp_proc_slurp(&text, "/proc/%d/task/%d/syscall", start->pid, start->tid) &&
	                !strncmp(dp_buf_str(&text), "running", strlen("running"));
	dp_buf_fini(&text);
	return is;
}

/* False: it got no processor for so long. */
static bool await_question(const struct dp_exec_start *start)
{
	const uint64_t until = dp_now_ns() + DP_EXEC_WAIT_NS;
	while (is_under_way(start)) {
		if (dp_now_ns() > until)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
	}
	return true;
}

/* The call's path, as typed. False: it is no exec, or cannot be read. */
static bool read_name(const struct dp_exec_start *start, struct dp_proc_call *call, char name[PATH_MAX])
{
	const struct dp_process p = {.pid = start->pid, .alive = start->tid};
	dp_proc_call(start->pid, start->tid, call);
	if (call->nr != SYS_execve && call->nr != SYS_execveat)
		return false;
	const size_t n = dp_mem_read(&p, dp_addr_of(call->args[call->nr == SYS_execveat]), name, PATH_MAX);
	return n && memchr(name, 0, n);
}

bool dp_exec_stat_named(const struct dp_exec_start *start, struct stat *ret)
{
	struct dp_proc_call call;
	char name[PATH_MAX], path[PATH_MAX + 64];
	if (!await_question(start) || !read_name(start, &call, name))
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
	return !await_question(start) || (read_name(start, &call, path) && is_any(path, name, n));
}

/* SPDX-License-Identifier: MIT */
#include "injector/tracee/exec/exec_named.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/tracee.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
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

/*
 * A path's absolute links lead from the thread's root, which may be a container's: to stat("/proc/TID/root/PATH") they lead from
 * ours. What openat2(2) cannot do, stat() does: links of /proc such as /proc/self/exe, and all before Linux 5.6.
 */
static bool stat_in_root(pid_t tid, const char *path, struct stat *ret)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char root[32];
	snprintf(root, sizeof(root), "/proc/%d/root", tid);
	dp_auto_close int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	dp_auto_close int file = dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (file >= 0)
		return !fstat(file, ret);
	while (*path == '/')
		path++;
	return dir >= 0 && errno != ENOENT && !fstatat(dir, path, ret, 0);
}

/* The path of the folder that a link in the thread's /proc leads to, from the thread's root. */
static bool folder_in_root(pid_t tid, const char *link, char path[PATH_MAX])
{
	char root_link[32], root[PATH_MAX];
	snprintf(root_link, sizeof(root_link), "/proc/%d/root", tid);
	const ssize_t n = readlink(root_link, root, PATH_MAX - 1), m = readlink(link, path, PATH_MAX - 1);
	if (n <= 0 || m <= 0)
		return false;
	root[n] = path[m] = '\0';
	const size_t skip = strcmp(root, "/") != 0 ? (size_t)n : 0;
	if (strncmp(path, root, skip) != 0 || (path[skip] && path[skip] != '/'))
		return false;
	memmove(path, path + skip, (size_t)m + 1 - skip);
	return true;
}

bool dp_exec_stat_named(const struct dp_exec_start *start, struct stat *ret)
{
	struct dp_proc_call call;
	char name[PATH_MAX], from[64], folder[PATH_MAX], path[2 * PATH_MAX];
	if (!dp_exec_await_call(start, DP_EXEC_WAIT_NS, &call) || !read_name(start, &call, name))
		return false;
	if (*name == '/')
		return stat_in_root(start->tid, name, ret);
	if (call.nr == SYS_execve || (int)call.args[0] == AT_FDCWD)
		snprintf(from, sizeof(from), "/proc/%d/cwd", start->tid);
	else
		snprintf(from, sizeof(from), "/proc/%d/fd/%d", start->tid, (int)call.args[0]);
	if (*name && folder_in_root(start->tid, from, folder)) {
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		return stat_in_root(start->tid, path, ret);
	}
	snprintf(path, sizeof(path), "%s%s%s", from, *name ? "/" : "", name);
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
	char head[SELFMAG];
	if (stat_exe(start->pid, &st))
		start->before = (struct dp_exec_file){st.st_dev, st.st_ino};
	if (fstat(start->fd, &st))
		return;
	start->file = (struct dp_exec_file){st.st_dev, st.st_ino};
	start->gains = st.st_mode & (S_ISUID | S_ISGID) || fgetxattr(start->fd, "security.capability", NULL, 0) > 0;
	start->elf = pread(start->fd, head, SELFMAG, 0) == SELFMAG && !memcmp(head, ELFMAG, SELFMAG);
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
	char link[48], path[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", start->fd);
	const ssize_t got = readlink(link, path, sizeof(path) - 1);
	path[got > 0 ? got : 0] = '\0';
	if (is_any(path, name, n))
		return true;
	if (dp_exec_locks_early())
		return false;
	/* Rather one too many, which is seen, than one too few. */
	return !dp_exec_await_call(start, DP_EXEC_WAIT_NS, &call) || (read_name(start, &call, path) && is_any(path, name, n));
}

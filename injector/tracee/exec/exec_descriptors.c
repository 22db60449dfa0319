/* SPDX-License-Identifier: MIT */
#include "injector/tracee/exec/exec_descriptors.h"

#include "base/descriptors.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define PASSING 3u /* what the thread opens to look at a question, stderr included */

static bool is_in(int fd, const int *keep, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (keep[i] == fd)
			return true;
	return fd == STDERR_FILENO;
}

static void close_unless_in(int fd, const int *keep, size_t n)
{
	if (!is_in(fd, keep, n))
		close(fd);
}

bool dp_exec_descriptors_own(const int *keep, size_t n)
{
	if (unshare(CLONE_FILES))
		return false;
	close_unless_in(STDIN_FILENO, keep, n); /* room for the directory */
	close_unless_in(STDOUT_FILENO, keep, n);
	DIR *dir = opendir("/proc/thread-self/fd");
	if (!dir)
		return false;
	for (const struct dirent *e; (e = readdir(dir));)
		if (*e->d_name != '.' && atoi(e->d_name) != dirfd(dir))
			close_unless_in(atoi(e->d_name), keep, n);
	closedir(dir);
	return true;
}

size_t dp_exec_descriptors_left(size_t open, size_t others)
{
	const size_t most = dp_descriptors_most(), used = open + others + PASSING;
	return most > used ? most - used : !open;
}

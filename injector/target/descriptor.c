/* SPDX-License-Identifier: MIT */
/*
 * Makes a descriptor in the target without disturbing the program.
 *
 * The kernel gives a new descriptor the lowest free number, and programs rely on that: after close(0), open() must return 0. So
 * the borrowed thread makes the descriptor, duplicates it to a high free number and closes the low one, all in one script. A
 * program with one thread does not run meanwhile; one with several finds the low number taken for about two microseconds.
 *
 * A script has no variables: the kernel's results are predicted from the open descriptors. If a result differs, the script ends,
 * and the rest is done call by call. The high number lies within the table that the kernel has allocated, because growing the
 * table would make the thread wait for an RCU grace period.
 */
#include "injector/target/target.h"

#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define TABLE_MOST 65536

struct plan {
	int64_t low, high; /* high < 0: no second number is free */
};

static bool *open_numbers(pid_t pid, pid_t tid, size_t n)
{
	char dir[64];
	bool *open = calloc(n + 1, sizeof(*open));
	snprintf(dir, sizeof(dir), "/proc/%d/task/%d/fd", pid, tid);
	dp_auto_closedir DIR *d = opendir(dir);
	for (struct dirent *e; open && d && (e = readdir(d));) {
		const unsigned long long fd = strtoull(e->d_name, NULL, 10);
		if (e->d_name[0] != '.' && fd < n)
			open[fd] = true;
	}
	return open;
}

static size_t table_size(pid_t pid, pid_t tid)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const long n = dp_proc_slurp(&status, "/proc/%d/task/%d/status", pid, tid)
	                       ? dp_status_long(dp_buf_str(&status), "FDSize", 0)
	                       : 0;
	dp_buf_fini(&status);
	return n > 0 && n <= TABLE_MOST ? (size_t)n : 0;
}

static struct plan predict(pid_t pid, pid_t tid)
{
	struct plan p = {-1, -1};
	const size_t n = table_size(pid, tid);
	dp_auto_free bool *open = open_numbers(pid, tid, n);
	for (size_t i = 0; open && i < n; i++) {
		if (!open[i] && p.low < 0)
			p.low = (int64_t)i;
		if (!open[i])
			p.high = (int64_t)i;
	}
	if (p.high == p.low)
		p.high = -1;
	return p;
}

static struct dp_step duplicate(int64_t fd, int64_t high)
{
	return (struct dp_step){.nr = SYS_fcntl, .args = {(uint64_t)fd, F_DUPFD_CLOEXEC, (uint64_t)high}, .want = high};
}

static struct dp_step close_it(int64_t fd)
{
	return (struct dp_step){.nr = SYS_close, .args = {(uint64_t)fd}};
}

/* A result was not as predicted: does the remaining steps. */
static struct dp_error *finish(struct dp_borrow *b, struct dp_step step[3], int64_t high, int64_t *fd)
{
	const int64_t low = step[0].got;
	int64_t ignored;
	*fd = low;
	if (high < 0)
		return NULL;
	if (!step[1].made) {
		step[1] = duplicate(low, high);
		DP_TRY(dp_remote_syscall(b, step[1].nr, step[1].args, &step[1].got));
	}
	if (step[1].got < 0) /* the limit on descriptors is lower than the table size */
		return NULL;
	*fd = step[1].got;
	if (step[2].made)
		return NULL;
	step[2] = close_it(low);
	return dp_remote_syscall(b, step[2].nr, step[2].args, &ignored);
}

struct dp_error *dp_remote_open(struct dp_borrow *b, uint64_t room, const char *name, const struct dp_step *make, int64_t *fd)
{
	const struct plan p = predict(dp_borrow_tid(b), dp_borrow_tid(b));
	struct dp_step step[3] = {*make, duplicate(p.low, p.high), close_it(p.low)};
	size_t done;
	step[0].want = p.low;
	*fd = -1;
	DP_TRY(dp_remote_script(b, room, step, p.high < 0 ? 1 : 3, UINT64_MAX, &done));
	if (!step[0].made)
		return dp_error(DP_TAG_REMOTE, "%s in the target was interrupted", name);
	if (step[0].got < 0) {
		errno = (int)-step[0].got;
		return dp_error_sys(DP_TAG_REMOTE, "%s in the target", name);
	}
	return finish(b, step, p.high, fd);
}

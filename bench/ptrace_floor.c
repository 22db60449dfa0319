/* SPDX-License-Identifier: MIT */
/*
 * The floor of stopping a whole process: seize, interrupt, wait, read registers and detach, for every thread. Prints the
 * microseconds from the first interrupt to the last detach. `fifo`: at real-time priority.
 *
 *	ptrace_floor PID [fifo]
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int list_threads(const char *pid, pid_t *tid, int max)
{
	char path[64];
	int n = 0;
	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir)) && n < max;)
		if (e->d_name[0] != '.')
			tid[n++] = atoi(e->d_name);
	if (dir)
		closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	static pid_t tid[4096];
	const struct sched_param param = {.sched_priority = 1};
	struct user_regs_struct regs;
	int status, n = argc > 1 ? list_threads(argv[1], tid, 4096) : 0;
	if (argc > 2)
		sched_setscheduler(0, SCHED_FIFO, &param);
	for (int i = 0; i < n; i++)
		if (ptrace(PTRACE_SEIZE, tid[i], 0, 0))
			return 1;
	double from = now_us();
	for (int i = 0; i < n; i++)
		ptrace(PTRACE_INTERRUPT, tid[i], 0, 0);
	for (int i = 0; i < n; i++)
		waitpid(tid[i], &status, __WALL);
	for (int i = 0; i < n; i++) {
		struct iovec iov = {&regs, sizeof(regs)};
		ptrace(PTRACE_GETREGSET, tid[i], NT_PRSTATUS, &iov);
	}
	for (int i = 0; i < n; i++)
		ptrace(PTRACE_DETACH, tid[i], 0, 0);
	printf("%d %.1f\n", n, now_us() - from);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Threads that the program does not know: LTTng's, the loader and the waker. Probed functions that they call are not the
 * program's doing: such hits are neither recorded nor counted. And what they have from the thread that was borrowed to make the
 * first of them, they should not have: real-time priority, or its one processor.
 */
#include "agent/lttng/hosted.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define COMM_MAX 16

/* LTTng's threads are called like the program, and "-ust"; ours DP_SINK_THREAD and DP_LTTNG_WAKER. */
static bool ours(const char *comm)
{
	const size_t n = strcspn(comm, "\n");
	return (n >= 4 && strncmp(comm + n - 4, "-ust", 4) == 0) || strncmp(comm, "dynprobe-", 9) == 0;
}

bool dp_lttng_thread_is_ours(void)
{
	char comm[COMM_MAX] = "";
	return prctl(PR_GET_NAME, comm) == 0 && ours(comm);
}

static void settle(pid_t tid, const cpu_set_t *cpus)
{
	const int policy = sched_getscheduler(tid);
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		sched_setscheduler(tid, SCHED_OTHER, &(struct sched_param){0});
	if (cpus)
		sched_setaffinity(tid, sizeof(*cpus), cpus);
}

static bool task_is_ours(const char *tid)
{
	char path[64], comm[COMM_MAX + 1] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", tid);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	const ssize_t n = read(fd, comm, COMM_MAX);
	close(fd);
	return n > 0 && ours(comm);
}

void dp_lttng_settle_guests(void)
{
	cpu_set_t cpus;
	const cpu_set_t *known = sched_getaffinity(getpid(), sizeof(cpus), &cpus) == 0 ? &cpus : NULL;
	DIR *tasks = opendir("/proc/self/task");
	settle(0, known);
	if (!tasks)
		return;
	for (struct dirent *d; (d = readdir(tasks)) != NULL;)
		if (task_is_ours(d->d_name))
			settle(atoi(d->d_name), known);
	closedir(tasks);
}

/* SPDX-License-Identifier: MIT */
/*
 * Threads that the program does not know: LTTng's and the sink's. Their calls of probed functions are not the program's: such
 * hits are neither recorded nor counted. The first of these threads inherits from the borrowed thread that created it what it
 * should not have: real-time priority, or its processor affinity.
 */
#include "agent/lttng/guest/guest.h"

#include "agent/sink.h"

#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define COMM_MAX 16

/* LTTng's threads are named after the program, plus "-ust". */
bool dp_lttng_named_as_ours(void)
{
	char comm[COMM_MAX] = "";
	if (prctl(PR_GET_NAME, comm) != 0)
		return false;
	const size_t n = strlen(comm);
	return (n >= 4 && strcmp(comm + n - 4, "-ust") == 0) || strcmp(comm, DP_SINK_THREAD) == 0;
}

void dp_lttng_ordinary_priority(void)
{
	cpu_set_t cpus;
	const int policy = sched_getscheduler(0);
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
	if (sched_getaffinity(getpid(), sizeof(cpus), &cpus) == 0)
		sched_setaffinity(0, sizeof(cpus), &cpus);
}

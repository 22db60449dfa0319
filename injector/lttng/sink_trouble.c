/* SPDX-License-Identifier: MIT */
/* Finds out why LTTng in the process records no events. It reports none of its errors, so checks its resources from outside. */
#include "injector/lttng/sink.h"

#include "agent/sink.h"
#include "base/cleanup.h"
#include "injector/target/target.h"
#include "injector/tracee/proc/limits.h"
#include "injector/tracee/proc/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SOCKET "/var/run/lttng/lttng-ust-sock-8" /* of the daemon that serves all users */
#define SPARE  2u                                /* a message of the session daemon brings two descriptors */

void dp_target_sink_expect(struct dp_target *t, const struct dp_sink_class *classes, size_t n)
{
	const uint32_t expected = DP_SINK_EXPECTED;
	for (size_t i = 0; i < n; i++) {
		uint32_t gate = 1;
		if (classes[i].gate && dp_target_read(t, dp_addr_of(classes[i].gate), &gate, sizeof(gate)) == sizeof(gate) &&
		    !gate)
			dp_error_destroy(dp_mem_write(&t->process, dp_addr_of(classes[i].gate), &expected, sizeof(expected)));
	}
}

struct guest {
	pid_t pid, sink; /* sink: the thread's tid, or 0 */
	unsigned listeners;
	int highest; /* descriptor number */
};

#define LISTENER "-ust" /* suffix of the names of LTTng's threads */

static void see_thread(struct guest *g, pid_t tid)
{
	char name[32];
	dp_proc_comm(tid, name, sizeof(name));
	const size_t n = strlen(name), tail = strlen(LISTENER);
	if (!strncmp(name, DP_SINK_THREAD, strlen(DP_SINK_THREAD)))
		g->sink = tid;
	if (n >= tail && !strcmp(name + n - tail, LISTENER))
		g->listeners++;
}

static int highest_descriptor(const struct guest *g)
{
	char path[64];
	int highest = 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd", g->pid, g->sink);
	dp_auto_closedir DIR *d = opendir(path);
	for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		highest = atoi(e->d_name) > highest ? atoi(e->d_name) : highest;
	return highest;
}

static void look(struct guest *g)
{
	struct dp_tids tids;
	if (!dp_proc_tids(g->pid, &tids))
		return;
	for (size_t i = 0; i < tids.n; i++)
		see_thread(g, tids.tid[i]);
	free(tids.tid);
	if (g->sink)
		g->highest = highest_descriptor(g);
}

static struct dp_error *no_descriptors(const struct dp_target *t, const struct guest *g)
{
	struct dp_resource_limits limits;
	dp_limits_read(&t->process, "", &limits);
	if ((uint64_t)g->highest + SPARE < limits.files.most)
		return NULL;
	return dp_error(
	        DP_TAG_SINK,
	        "LTTng has used all %llu descriptors that process %d may have (RLIMIT_NOFILE), and needs two for each "
	        "channel and processor: raise the limit (prlimit --pid %d --nofile=1024) before the next run, or use --sink ring",
	        (unsigned long long)limits.files.most, g->pid, g->pid);
}

/* Does the path exist in the process's own root directory? Absolute symbolic links (/var/run) are its own, too. */
static bool sees(pid_t pid, const char *path)
{
	char root[64];
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	dp_auto_close int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	dp_auto_close int fd = dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd >= 0;
}

static bool is_elsewhere(pid_t pid)
{
	char path[64];
	struct stat ours, theirs;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return !stat("/proc/self/ns/mnt", &ours) && !stat(path, &theirs) && ours.st_ino != theirs.st_ino;
}

/* The program of a container finds no session daemon of the host unless its socket is mounted there. */
static struct dp_error *no_socket(pid_t pid)
{
	if (!is_elsewhere(pid) || sees(pid, SOCKET))
		return NULL;
	return dp_error(DP_TAG_SINK,
	                "process %d has a root directory of its own, without the socket of a session daemon (%s): start one in "
	                "the container, or mount /var/run/lttng and /dev/shm of the host there; or use --sink ring",
	                pid, SOCKET);
}

struct dp_error *dp_target_sink_trouble(struct dp_target *t)
{
	struct guest g = {.pid = dp_target_pid(t)};
	look(&g);
	if (!g.sink)
		return NULL;
	DP_TRY(no_socket(g.pid));
	if (!g.listeners)
		return dp_error(
		        DP_TAG_SINK,
		        "LTTng could not start its threads in process %d: it is at the limit of its user (RLIMIT_NPROC) or "
		        "of its cgroup (pids.max); "
		        "use --sink ring",
		        g.pid);
	return no_descriptors(t, &g);
}

/* SPDX-License-Identifier: MIT */
#ifndef DP_INJECTOR_HEADROOM_H
#define DP_INJECTOR_HEADROOM_H

#include <stdint.h>
#include <sys/types.h>

/* How much memory a process may still take before somebody is killed for it. */
struct dp_headroom {
	uint64_t left;  /* bytes */
	uint64_t most;  /* what the limit that decides allows */
	char by[1088];  /* the file that says so: a control group's, or /proc/meminfo */
};

/*
 * Over all control groups that the process is in, of both versions, and the machine. File cache that is not in use counts as free. What
 * cannot be read does not limit. `root` is put in front of every path: "" but for tests.
 */
void dp_headroom_read(const char *root, pid_t pid, struct dp_headroom *ret);

#endif

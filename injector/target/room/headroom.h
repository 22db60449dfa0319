/* SPDX-License-Identifier: MIT */
#ifndef DP_INJECTOR_TARGET_ROOM_HEADROOM_H
#define DP_INJECTOR_TARGET_ROOM_HEADROOM_H

#include <stdint.h>
#include <sys/types.h>

/* How much more memory a process can use before the kernel kills a process for it. */
struct dp_headroom {
	uint64_t left;  /* bytes */
	uint64_t most;  /* the limit that applies */
	char by[1088];  /* where the limit comes from: a control group's file, or /proc/meminfo */
};

/*
 * Considers all control groups of the process, of both versions, and the machine. Inactive file cache counts as free. A file that
 * cannot be read sets no limit. `root` is prepended to every path: "" outside of tests.
 */
void dp_headroom_read(const char *root, pid_t pid, struct dp_headroom *ret);

#endif

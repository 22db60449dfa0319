/* SPDX-License-Identifier: MIT */
/* Where a thread sleeps, without stopping it: docs/live-patching.md, "Threads that sleep". Private to injector/. */
#ifndef DP_INJECTOR_ASLEEP_H
#define DP_INJECTOR_ASLEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_asleep {
	long nr;           /* the system call that it sleeps in */
	uint64_t sp, pc;   /* pc: behind the call's instruction */
	uint64_t switches; /* how often it has been switched away from */
	char text[256];    /* as the kernel said it */
};
/* Does the thread sleep in a system call, traced by nobody? False too where that is not told. */
bool dp_asleep_take(pid_t pid, pid_t tid, struct dp_asleep *ret);
/* Has it slept ever since? Then all that was read of it in between belongs together. */
bool dp_asleep_still(pid_t pid, pid_t tid, const struct dp_asleep *was);

#endif

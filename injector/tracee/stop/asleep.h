/* SPDX-License-Identifier: MIT */
/* Finds where a thread sleeps, without stopping it: docs/live-patching.md, "Threads that sleep". Private to injector/. */
#ifndef DP_INJECTOR_TRACEE_STOP_ASLEEP_H
#define DP_INJECTOR_TRACEE_STOP_ASLEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_asleep {
	long nr;           /* the system call it sleeps in */
	uint64_t sp, pc;   /* pc: after the syscall instruction */
	uint64_t switches; /* context switches so far */
	char text[256];    /* /proc/PID/task/TID/syscall */
};
/* Does the thread sleep in a system call, untraced? False too if the kernel does not tell. */
bool dp_asleep_take(pid_t pid, pid_t tid, struct dp_asleep *ret);
/* Has it slept without a break since `was`? Then everything read from it in between is consistent. */
bool dp_asleep_still(pid_t pid, pid_t tid, const struct dp_asleep *was);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to the ptrace half of injector/. */
#ifndef DP_INJECTOR_TRACEE_PROC_CHECKS_H
#define DP_INJECTOR_TRACEE_PROC_CHECKS_H

#include "injector/tracee/tracee.h"

/* May this user trace the process? If not: DP_TAG_PERMISSION, naming the rule that forbids it and the fix. */
struct dp_error *dp_check_permission(const struct dp_process *p) DP_MUST_CHECK;
/* If seccomp is on: DP_TAG_SECCOMP unless `allowed` and this user may suspend it. */
struct dp_error *dp_check_seccomp(const struct dp_process *p, bool allowed) DP_MUST_CHECK;
/* Reads a thread's seccomp mode and shadow stack into `p`; DP_TAG_TRACED if it has a tracer. Ignores a thread that ended. */
struct dp_error *dp_check_thread(struct dp_process *p, pid_t tid) DP_MUST_CHECK;
/* Is `tid` a thread of dynprobe itself? */
bool dp_is_own_task(pid_t tid);

#endif

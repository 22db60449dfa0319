/* SPDX-License-Identifier: MIT */
/* Private to the ptrace half of injector/. */
#ifndef DP_INJECTOR_CHECKS_H
#define DP_INJECTOR_CHECKS_H

#include "injector/tracee/tracee.h"

/* May this user trace the process? If not: DP_TAG_PERMISSION with the rule that forbids it and what helps. */
struct dp_error *dp_check_permission(const struct dp_process *p) DP_MUST_CHECK;
/* A filter or strict mode that was found: DP_TAG_SECCOMP unless it is allowed and this user may suspend it. */
struct dp_error *dp_check_seccomp(const struct dp_process *p, bool allowed) DP_MUST_CHECK;
/* Reads one thread's status: its seccomp mode and shadow stack, into `p`, and its tracer: DP_TAG_TRACED. A thread that ended says nothing. */
struct dp_error *dp_check_thread(struct dp_process *p, pid_t tid) DP_MUST_CHECK;
/* Is `tid` a thread of this very process? */
bool dp_is_own_task(pid_t tid);

#endif

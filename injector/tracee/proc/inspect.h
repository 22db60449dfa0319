/* SPDX-License-Identifier: MIT */
/* For callers that only read /proc. */
#ifndef DP_INJECTOR_TRACEE_PROC_INSPECT_H
#define DP_INJECTOR_TRACEE_PROC_INSPECT_H

#include "injector/tracee/tracee.h"

/* Like dp_process_check(), but does not check for tracers, seccomp or permission. */
struct dp_error *dp_process_inspect(pid_t pid, struct dp_process *ret) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/* Another tool that traces the process: who it is, and how its user lets the process go. */
#ifndef DP_INJECTOR_TRACEE_PROC_TRACER_H
#define DP_INJECTOR_TRACEE_PROC_TRACER_H

#include "injector/tracee/tracee.h"

#include <stdbool.h>

/* The tracer of a thread, in our pid namespace; 0: none, or one of another namespace, or the thread has ended. */
pid_t dp_tracer_of(pid_t pid, pid_t tid);
/* DP_TAG_TRACED: names the tracer and says what to do. `tracer` 0: the kernel refuses us as if there were one that we cannot see.
 */
struct dp_error *dp_tracer_refuse(const struct dp_process *p, pid_t tid, pid_t tracer) DP_IS_ERROR;

/* Is this the name of a debugger or tracer that we know? */
bool dp_tracer_is_known(const char *comm);

#endif

/* SPDX-License-Identifier: MIT */
/* For who only reads what /proc says of a process. */
#ifndef DP_INJECTOR_LOOK_H
#define DP_INJECTOR_LOOK_H

#include "injector/tracee/tracee.h"

/* As dp_process_check(); but neither tracers, nor filters, nor rules on tracing are in the way. */
struct dp_error *dp_process_look(pid_t pid, struct dp_process *ret) DP_MUST_CHECK;

#endif

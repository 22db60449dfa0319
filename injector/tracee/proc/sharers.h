/* SPDX-License-Identifier: MIT */
#ifndef DP_INJECTOR_TRACEE_PROC_SHARERS_H
#define DP_INJECTOR_TRACEE_PROC_SHARERS_H

#include "injector/tracee/tracee.h"

/* A process that shares the memory of `p` but is not a thread of it, or 0. */
pid_t dp_sharer(const struct dp_process *p);

#endif

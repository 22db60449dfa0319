/* SPDX-License-Identifier: MIT */
#ifndef DP_INJECTOR_TRACEE_PROC_SHARERS_H
#define DP_INJECTOR_TRACEE_PROC_SHARERS_H

#include "injector/tracee/tracee.h"

/* A process that shares the memory of `p` but is not a thread of it, or 0. */
pid_t dp_sharer(const struct dp_process *p);

/*
 * The same, but 0 as soon as there is none for a moment, within limit_ns. Sharers come and go, and such moments are short. For
 * use while no thread is held.
 */
pid_t dp_sharer_stays(const struct dp_process *p, uint64_t limit_ns);

#endif

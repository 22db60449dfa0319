/* SPDX-License-Identifier: MIT */
/* The auxiliary vector of a process that has just called exec. Private to the ptrace half of injector/. */
#ifndef DP_INJECTOR_TRACEE_PROC_AUXV_H
#define DP_INJECTOR_TRACEE_PROC_AUXV_H

#include "injector/tracee/tracee.h"

struct dp_auxv_entry {
	dp_addr slot;   /* where the vector holds AT_ENTRY's value */
	uint64_t value; /* the executable's entry point */
};
/*
 * Reads the vector from the new stack of a process that we hold and that has not run since exec. *is_static: no loader was mapped
 * (AT_BASE is 0); `ret` is then not filled.
 */
struct dp_error *dp_entry_find(const struct dp_process *p, struct dp_auxv_entry *ret, bool *is_static) DP_MUST_CHECK;

#endif

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
/* Is this address in the code of the process's loader? */
bool dp_loader_has(pid_t pid, uint64_t pc);
/* Has the program begun? Every loader's _start first calls a function, whose return address then is below argc; so does the
 * program's. */
bool dp_loader_is_done(const struct dp_process *p);
/* Is glibc's loader still preparing the program? *stack: where exec put argc. */
bool dp_loader_is_starting(const struct dp_process *p, uint64_t *stack);
/*
 * The same for a loader that is_starting and that we hold in a system call: it has read the vector and will go to the address in
 * its own frame, ret->slot. That word is dead when the program begins. DP_TAG_UNSTOPPABLE: not found.
 */
struct dp_error *dp_entry_find_kept(const struct dp_process *p, uint64_t stack, struct dp_auxv_entry *ret) DP_MUST_CHECK;

#endif

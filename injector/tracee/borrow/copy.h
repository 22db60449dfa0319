/* SPDX-License-Identifier: MIT */
/*
 * A copy of a process's memory at one moment: a child that the process is made to fork and that never runs. It shares no memory
 * with other processes (except what the program itself shares), costs the process its page tables, and is not reported by the
 * program's wait() unless that asks for clones.
 */
#ifndef DP_INJECTOR_TRACEE_BORROW_COPY_H
#define DP_INJECTOR_TRACEE_BORROW_COPY_H

#include "injector/tracee/tracee.h"

struct dp_copy; /* opaque */
/*
 * Forks on a thread borrowed from a freeze. DP_TAG_REMOTE: the kernel refused (memory, limits), or until_ns came first: then
 * there is no copy, and all other threads of the freeze have been released (`parted`).
 */
struct dp_error *dp_copy_make(const struct dp_process *p, struct dp_borrow *b, uint64_t until_ns,
                              struct dp_copy **ret) DP_MUST_CHECK;
/*
 * Call it when the threads have been released. The copy takes a name ("dp-copy"), closes the process's descriptors, so that none
 * stays open if the process ends, becomes the kernel's first choice when memory runs out, and gets a cleanup child.
 */
void dp_copy_part(struct dp_copy *c);
pid_t dp_copy_pid(const struct dp_copy *c);
/* Kills the copy, and reaps it in the process, on a thread borrowed briefly for that. Accepts NULL. */
struct dp_copy *dp_copy_destroy(struct dp_copy *c);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A copy of a process's memory as of one moment: a child that the process is made to fork and that never runs. It shares memory
 * with nobody (but for what the program itself shares with others), costs the process its page tables, and is seen by no wait()
 * of the program that does not ask for clones.
 */
#ifndef DP_INJECTOR_COPY_H
#define DP_INJECTOR_COPY_H

#include "injector/tracee/tracee.h"

struct dp_copy; /* opaque */
/*
 * On a thread that was borrowed of a freeze. DP_TAG_REMOTE: the kernel refused (memory, limits), or until_ns came first: then
 * there is none, and all other threads of the freeze have gone on (`parted`).
 */
struct dp_error *dp_copy_make(const struct dp_process *p, struct dp_borrow *b, uint64_t until_ns,
                              struct dp_copy **ret) DP_MUST_CHECK;
/*
 * When the threads go on again: the copy takes a name ("dp-copy"), lets go of the process's descriptors, so that none stays open
 * if the process ends, is what the kernel ends first where memory runs out, and is provided for should we be killed.
 */
void dp_copy_part(struct dp_copy *c);
pid_t dp_copy_pid(const struct dp_copy *c);
/* Ends it, and clears what it leaves in the process's list of children, for which a thread is borrowed for a moment. Accepts
 * NULL. */
struct dp_copy *dp_copy_destroy(struct dp_copy *c);

#endif

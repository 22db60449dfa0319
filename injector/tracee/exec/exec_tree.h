/* SPDX-License-Identifier: MIT */
/*
 * Processes and what they fork, for as long as any of them lives. The kernel's proc connector tells of each fork before the child
 * runs, so the set is complete when the child's exec asks. Without it (no CAP_NET_ADMIN, a pid namespace) a process belongs to
 * the set if an ancestor does: then children whose parent ends before they execute a program are missed.
 */
#ifndef DP_INJECTOR_TRACEE_EXEC_EXEC_TREE_H
#define DP_INJECTOR_TRACEE_EXEC_EXEC_TREE_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct dp_exec_tree;                            /* opaque; all functions may be called by any thread */
struct dp_exec_tree *dp_exec_tree_create(void); /* NULL: out of memory */
struct dp_exec_tree *dp_exec_tree_destroy(struct dp_exec_tree *t);
void dp_exec_tree_add(struct dp_exec_tree *t, pid_t pid);
/* Readable when there is news; -1: there never is. */
int dp_exec_tree_fd(const struct dp_exec_tree *t);
/* Reads the news, and tells whether the process belongs to the set. */
bool dp_exec_tree_has(struct dp_exec_tree *t, pid_t pid);
/* The process's exec asks: call it before the answer. */
void dp_exec_tree_note_asked(struct dp_exec_tree *t, pid_t pid);
/*
 * A process of the set that has executed a program without having asked, 0 if there is none more: its file is on a file system
 * that is not watched, or a memfd. Without news, and where many wait to be taken, none is known.
 */
pid_t dp_exec_tree_take_unasked(struct dp_exec_tree *t);
/* Does any process of the set live? */
bool dp_exec_tree_lives(struct dp_exec_tree *t);

#endif

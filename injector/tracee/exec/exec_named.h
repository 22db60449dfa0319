/* SPDX-License-Identifier: MIT */
/* What is about to be executed: the file of a question, and what the call of the waiting thread says. */
#ifndef DP_INJECTOR_TRACEE_EXEC_EXEC_NAMED_H
#define DP_INJECTOR_TRACEE_EXEC_EXEC_NAMED_H

#include "injector/tracee/exec/exec_watch.h"

struct dp_proc_call;
struct stat;

/* Before Linux 6.8 exec holds a lock while it asks, which looking into the process may wait for. */
bool dp_exec_locks_early(void);
/* The kernel asks before the thread sleeps: waits until its call is known. False: it has ended, or got no processor for `ns`. */
bool dp_exec_await_call(const struct dp_exec_start *start, uint64_t ns, struct dp_proc_call *ret);
/* The file that the call names, as its process sees it. False: unknown. */
bool dp_exec_stat_named(const struct dp_exec_start *start, struct stat *ret);
/* Notes what the process executes until then, and the question's file. Like all that looks at that file, for the watch's thread.
 */
void dp_exec_note(struct dp_exec_start *start);
/* Does the process execute another program now, or has it ended? */
bool dp_exec_is_over(const struct dp_exec_start *start);
/* Is it the file that the path leads to? */
bool dp_exec_is_file(const struct dp_exec_start *start, const char *path);
/*
 * Does the program have one of the names: its file, or that by which the call names it (a link's, which becomes the process's
 * name in /proc; not asked if exec locks early)? Names in /proc are cut after 15 bytes: cut ones match, too.
 */
bool dp_exec_is_named(const struct dp_exec_start *start, const char *const *name, size_t n);

#endif

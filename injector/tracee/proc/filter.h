/* SPDX-License-Identifier: MIT */
/*
 * The seccomp filters of a thread, read and evaluated for the system calls that dynprobe makes in a process. Private to
 * injector/.
 */
#ifndef DP_INJECTOR_TRACEE_PROC_FILTER_H
#define DP_INJECTOR_TRACEE_PROC_FILTER_H

#include "injector/tracee/tracee.h"

/* Evaluates all filters of a thread that we hold stopped. Adds to *ret, which begins as zeroes: several threads may share it. */
void dp_filter_judge(pid_t tid, struct dp_filter_verdict *ret);
/*
 * Why the process's threads must not make all calls of that kind: "a seccomp filter that dynprobe has not read", "mremap kills
 * the process"; NULL if they may.
 */
const char *dp_filter_forbids(const struct dp_process *p, enum dp_calls kind);
/* Takes the verdict of all threads into `p`: p->seccomp stays set unless borrowed threads may make their calls. */
void dp_filter_take(struct dp_process *p, const struct dp_filter_verdict *all);
/* Of the text of a thread's status file: the number of its filters, 0 if none. */
unsigned dp_filter_count(const char *status);
/* Is the thread under a filter that is not known from the checks of all threads? */
bool dp_filter_is_new(const struct dp_process *p, const char *status);
/* May we read filters? False without CAP_SYS_ADMIN, or if we have a filter ourselves. The kernel may refuse all the same. */
bool dp_filter_readable(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The descriptors of the thread that reads the questions of a watch. The kernel opens the file of a question in the table of who
 * reads it. If that table is full, the kernel denies the exec (EPERM), whoever makes it. So the thread has a table of its own,
 * which the tool's files cannot fill, and reads no more questions than it has room for (fs/notify/fanotify/fanotify_user.c).
 */
#ifndef DP_INJECTOR_TRACEE_EXEC_EXEC_DESCRIPTORS_H
#define DP_INJECTOR_TRACEE_EXEC_EXEC_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Gives the calling thread a table of its own, in which only `keep` and stderr are open. A negative number in `keep` means none.
 * False: errno says why; the thread must end.
 */
bool dp_exec_descriptors_own(const int *keep, size_t n);
/* How many more the thread may open for questions, if `open` are open for questions, and `others` besides. 0 only if open > 0. */
size_t dp_exec_descriptors_left(size_t open, size_t others);

#endif

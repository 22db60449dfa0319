/* SPDX-License-Identifier: MIT */
/* Which processes run a program. */
#ifndef DP_INJECTOR_TRACEE_PROC_NAMED_H
#define DP_INJECTOR_TRACEE_PROC_NAMED_H

#include <stdbool.h>
#include <sys/types.h>

/* By its name in /proc, as pgrep -x, or by its executable's: names in /proc are cut after 15 bytes. */
bool dp_proc_is_named(pid_t pid, const char *name);
/* Does it use its parent's memory, and will until it executes a program? False if that cannot be read. */
bool dp_proc_is_vfork_child(pid_t pid);
/* Is its executable this file? Its name does not matter. */
bool dp_proc_executes(pid_t pid, const char *path);

#endif

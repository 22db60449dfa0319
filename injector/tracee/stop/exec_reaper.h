/* SPDX-License-Identifier: MIT */
/* Reaps seized threads that die while another is being seized; see exec_reaper.c. Private to the ptrace half of injector/. */
#ifndef DP_INJECTOR_TRACEE_STOP_EXEC_REAPER_H
#define DP_INJECTOR_TRACEE_STOP_EXEC_REAPER_H

#include "injector/tracee/tracee.h"

/* Between begin and end, SIGALRM and ITIMER_REAL are in use. `pid`: the thread group's leader. */
void dp_exec_reaper_begin(pid_t pid);
void dp_exec_reaper_end(void);
/* The threads seized so far; NULL while their list changes. */
void dp_exec_reaper_watch(const struct dp_held *thread, size_t n);

#endif

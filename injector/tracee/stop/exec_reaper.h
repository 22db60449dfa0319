/* SPDX-License-Identifier: MIT */
/* Reaps seized threads that die while another one is being seized; see exec_reaper.c. Private to the ptrace half of injector/. */
#ifndef DP_INJECTOR_UNDERTAKER_H
#define DP_INJECTOR_UNDERTAKER_H

#include "injector/tracee/tracee.h"

/* From begin to end SIGALRM and the real-time interval timer are in use. `pid`: the thread group's leader. */
void dp_exec_reaper_begin(pid_t pid);
void dp_exec_reaper_end(void);
/* The threads that are seized by now; NULL while their list changes. */
void dp_exec_reaper_watch(const struct dp_held *thread, size_t n);

#endif

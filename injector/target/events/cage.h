/* SPDX-License-Identifier: MIT */
/* Threads that come under a seccomp filter while probes stand: their hits must not make system calls from then on. */
#ifndef DP_INJECTOR_TARGET_EVENTS_CAGE_H
#define DP_INJECTOR_TARGET_EVENTS_CAGE_H

#include "injector/target/target.h"

struct dp_thread_status {
	pid_t ns_tid;  /* in its own pid namespace */
	bool filtered; /* by a filter that is not known from the checks of all threads */
};
/* False if the thread has ended, or is a zombie. */
bool dp_thread_status_read(const struct dp_target *t, pid_t pid, pid_t tid, struct dp_thread_status *ret);
/* Looks ten times a second: at the first thread, another one, and a few of the fork children that record. */
void dp_cage_look(struct dp_target *t);
/* Before install: DP_TAG_SECCOMP under a filter. `what` makes the calls, `instead` is what to do; for the message. */
struct dp_error *dp_cage_check(const struct dp_target *t, const char *what, const char *instead) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/* A child process that cleans up if dynprobe is killed. */
#ifndef DP_INJECTOR_TRACEE_STOP_CLEANUP_CHILD_H
#define DP_INJECTOR_TRACEE_STOP_CLEANUP_CHILD_H

#include "base/error.h"

struct dp_cleanup_child; /* opaque */
/*
 * Forks the child, so `act` sees the memory behind `data` as it is now. If this process ends without dp_cleanup_child_dismiss(),
 * the child calls `act` and exits. The child is in a session of its own, has none of our descriptors, and uses no processor time
 * while it waits. `act` may allocate and trace.
 */
struct dp_error *dp_cleanup_child_create(void (*act)(const void *data), const void *data,
                                         struct dp_cleanup_child **ret) DP_MUST_CHECK;
/* The child exits without calling `act`. Accepts NULL. */
struct dp_cleanup_child *dp_cleanup_child_dismiss(struct dp_cleanup_child *h);

#endif

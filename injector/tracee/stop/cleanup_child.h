/* SPDX-License-Identifier: MIT */
/* A process of ours that does what is left to do, should we be killed. */
#ifndef DP_INJECTOR_HEIR_H
#define DP_INJECTOR_HEIR_H

#include "base/error.h"

struct dp_cleanup_child; /* opaque */
/*
 * Forked here, so it knows what `data` leads to as it is now. If this process ends without dp_cleanup_child_dismiss(), it calls
 * `act` and ends. It is in a session of its own, has none of our descriptors, and waits without costing anything. `act` may
 * allocate and trace.
 */
struct dp_error *dp_cleanup_child_create(void (*act)(const void *data), const void *data,
                                         struct dp_cleanup_child **ret) DP_MUST_CHECK;
/* It ends without having done anything. Accepts NULL. */
struct dp_cleanup_child *dp_cleanup_child_dismiss(struct dp_cleanup_child *h);

#endif

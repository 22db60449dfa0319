/* SPDX-License-Identifier: MIT */
/* A set of threads that need no further visit. A tid can be reused, so the start time is part of the key. */
#ifndef DP_INJECTOR_TARGET_SEEN_H
#define DP_INJECTOR_TARGET_SEEN_H

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

struct dp_seen; /* one element; NULL is the empty set */

bool dp_seen_has(const struct dp_seen *set, pid_t tid, uint64_t start_time);
/* Ignores the start time: for a tid that was listed but has ended since. */
bool dp_seen_id(const struct dp_seen *set, pid_t tid);
struct dp_error *dp_seen_add(struct dp_seen **set, pid_t tid, uint64_t start_time) DP_MUST_CHECK;
void dp_seen_fini(struct dp_seen **set);

#endif

/* SPDX-License-Identifier: MIT */
/* Threads that need no more: a set of them. An id alone does not name a thread, it may be another one's by now. */
#ifndef DP_INJECTOR_SEEN_H
#define DP_INJECTOR_SEEN_H

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

struct dp_seen; /* one of them; NULL is the empty set */

bool dp_seen_has(const struct dp_seen *set, pid_t tid, uint64_t start_time);
/* A thread of that id, whichever: of one that is listed and gone by now. */
bool dp_seen_id(const struct dp_seen *set, pid_t tid);
struct dp_error *dp_seen_add(struct dp_seen **set, pid_t tid, uint64_t start_time) DP_MUST_CHECK;
void dp_seen_fini(struct dp_seen **set);

#endif

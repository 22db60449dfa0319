/* SPDX-License-Identifier: MIT */
/* Leftovers of a tool that was killed before it mapped anything. */
#ifndef DP_INJECTOR_TARGET_GROUP_LEFTOVER_H
#define DP_INJECTOR_TARGET_GROUP_LEFTOVER_H

#include "injector/target/target.h"

/* Calls `found` for each of our memfds among the target's descriptors, until `found` fails. */
typedef struct dp_error *(*dp_leftover_fn)(struct dp_target *t, int64_t fd, uint64_t inode, void *data);
struct dp_error *dp_leftover_descriptors(struct dp_target *t, dp_leftover_fn found, void *data) DP_MUST_CHECK;
/* The same for all descriptors of the target; `inode` is 0. */
struct dp_error *dp_descriptors(struct dp_target *t, dp_leftover_fn found, void *data) DP_MUST_CHECK;
/* Is this descriptor of the target one of our memfds now? Call with threads held, or the program may replace the file. */
bool dp_leftover_is_ours(const struct dp_target *t, int64_t fd);
/* A private region that has just been made and contains only the memfd's name. Not mapped, with address 0, if there is none. */
struct dp_region dp_leftover_private(struct dp_target *t);

#endif

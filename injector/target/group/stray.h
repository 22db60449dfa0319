/* SPDX-License-Identifier: MIT */
/* What a tool leaves that was killed before anything was mapped. */
#ifndef DP_INJECTOR_STRAY_H
#define DP_INJECTOR_STRAY_H

#include "injector/target/target.h"

/* Calls `found` for each descriptor of the target that is one of our memfds, until it fails. */
typedef struct dp_error *(*dp_stray_fn)(struct dp_target *t, int64_t fd, uint64_t inode, void *data);
struct dp_error *dp_stray_descriptors(struct dp_target *t, dp_stray_fn found, void *data) DP_MUST_CHECK;
/* The same for all of the target's descriptors; `inode` is 0. */
struct dp_error *dp_descriptors(struct dp_target *t, dp_stray_fn found, void *data) DP_MUST_CHECK;
/* Is that descriptor of the target one of our memfds, now? Asked while threads are held, or they might put another file there. */
bool dp_stray_is_ours(const struct dp_target *t, int64_t fd);
/* A private region that was just made: nothing but the memfd's name is in it. Without an address (not mapped) if there is none. */
struct dp_region dp_stray_private(struct dp_target *t);

#endif

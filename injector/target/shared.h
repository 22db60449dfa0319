/* SPDX-License-Identifier: MIT */
/* The tool's side of the memory that it shares with a target. */
#ifndef DP_INJECTOR_TARGET_SHARED_H
#define DP_INJECTOR_TARGET_SHARED_H

#include "injector/target/target.h"

/* Writes `n` bytes at the start of region `r` through the memfd: code is never writable in the target. */
struct dp_error *dp_shared_write(struct dp_target *t, const struct dp_region *r, const void *bytes, size_t n) DP_MUST_CHECK;
/* Maps the data region here, and writes slots, sites, control page and the target's private header. The magic word comes last. */
struct dp_error *dp_shared_fill(struct dp_target *t) DP_MUST_CHECK;
/* Releases the tool's side only; mapping.c unmaps the target's. */
void dp_shared_close(struct dp_target *t);

#endif

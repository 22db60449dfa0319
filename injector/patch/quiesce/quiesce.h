/* SPDX-License-Identifier: MIT */
/* May generated code be unmapped, and text be changed? Where threads are, and where they return to. */
#ifndef DP_INJECTOR_PATCH_QUIESCE_QUIESCE_H
#define DP_INJECTOR_PATCH_QUIESCE_QUIESCE_H

#include "injector/target/target.h"

/*
 * With all threads held: moves threads that are in a stub, at a point with an equivalent in the program (dp_pc_pair), to that
 * point. False if another thread is in our code, or has a signal frame that returns into it; `why` names the thread.
 */
bool dp_quiesce(struct dp_target *t, const struct dp_installation *in, struct dp_freeze *f, char why[128]);
/* The same for a thread that is not held: only its rip and rsp are known. Also false if it must be stopped to tell. */
bool dp_quiesce_asleep(struct dp_target *t, const struct dp_installation *in, const struct dp_held *h);
/* Moves a thread whose pc is one of pair[].stub to the original. `pair` is ascending. */
void dp_move_to_original(struct dp_held *h, const struct dp_pc_pair *pair, size_t n);
/*
 * Does it have a signal frame that returns to one of pair[].stub? Without `frames` (quiesce_frames.h) a stale frame counts too.
 */
bool dp_returns_to(struct dp_target *t, const struct dp_quiesce_frames *frames, const struct dp_held *h, const struct dp_pc_pair *pair, size_t n);
/* For a thread that is not held: is it outside all of them, and will it return to none? */
bool dp_stays_away(struct dp_target *t, const struct dp_held *h, const struct dp_pc_pair *pair, size_t n);
/* For which of the `n` ascending addresses is a thread of `f` there, or has a signal frame or return address? (windows) */
void dp_stands_at(struct dp_target *t, const struct dp_freeze *f, const uint64_t *addr, size_t n, bool *hit);

#endif

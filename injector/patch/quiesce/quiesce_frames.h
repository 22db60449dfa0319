/* SPDX-License-Identifier: MIT */
/* Threads in code that a stub called. Private to quiesce.c and remove.c. */
#ifndef DP_INJECTOR_PATCH_QUIESCE_QUIESCE_FRAMES_H
#define DP_INJECTOR_PATCH_QUIESCE_QUIESCE_FRAMES_H

#include "injector/target/target.h"

struct dp_quiesce_frames; /* opaque */
/* Does everything slow, before a thread is held. NULL if it fails: then every suspicious word counts. */
struct dp_quiesce_frames *dp_frames_create(struct dp_target *t, const struct dp_installation *in);
/* Sets in->frames, unless it is set. */
void dp_frames_need(struct dp_target *t, struct dp_installation *in);
/* Accepts NULL. */
struct dp_quiesce_frames *dp_frames_destroy(struct dp_quiesce_frames *f);
/* Could this word on a stack mean that the thread will return into a stub? `rsp` is the thread's. */
bool dp_frames_suspect(const struct dp_installation *in, uint64_t word, uint64_t rsp);
/* Is the thread in the sink's own code, where its stack tells little? */
bool dp_frames_in_sink(const struct dp_quiesce_frames *f, uint64_t pc);
/*
 * Does the sink's own record say that the thread is in no hit? That settles a suspicion if neither its pc nor that of a signal
 * frame is in the sink's code. False without a record.
 */
bool dp_frames_no_hit(const struct dp_quiesce_frames *f, const struct dp_process *p, const struct dp_held *h);
/* Will the thread certainly not return into a stub? */
bool dp_frames_clear(const struct dp_quiesce_frames *f, const struct dp_held *h, char why[128]);
/* Is what looks like a signal frame on its stack a stale one, whose handler has returned? */
bool dp_frames_left_over(const struct dp_quiesce_frames *f, const struct dp_held *h);

#endif

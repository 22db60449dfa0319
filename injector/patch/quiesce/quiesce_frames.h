/* SPDX-License-Identifier: MIT */
/* Threads that are in code which a stub called. Private to quiesce.c and remove.c. */
#ifndef DP_INJECTOR_QUIESCE_FRAMES_H
#define DP_INJECTOR_QUIESCE_FRAMES_H

#include "injector/target/target.h"

struct dp_frames; /* opaque */
/* Everything that takes time, before a thread is held. NULL if it cannot be made: then every suspicion counts. */
struct dp_frames *dp_frames_create(struct dp_target *t, const struct dp_installation *in);
/* Where that has been worth its time: in->frames, unless they are there. */
void dp_frames_need(struct dp_target *t, struct dp_installation *in);
/* Accepts NULL. */
struct dp_frames *dp_frames_destroy(struct dp_frames *f);
/* Might this word on a stack, `rsp` being the thread's, mean that the thread will return into one of the stubs? */
bool dp_frames_suspect(const struct dp_installation *in, uint64_t word, uint64_t rsp);
/* Is the thread in the sink's own code, where its stacks say little? */
bool dp_frames_in_sink(const struct dp_frames *f, uint64_t pc);
/*
 * Is the thread in no hit of the sink's, by its own account? That settles a suspicion, if neither its pc nor that of a signal frame is in the
 * sink's code. False where there is no account.
 */
bool dp_frames_no_hit(const struct dp_frames *f, const struct dp_process *p, const struct dp_held *h);
/* Will it really not? */
bool dp_frames_clear(const struct dp_frames *f, const struct dp_process *p, const struct dp_held *h, char why[128]);
/* Is what looks like a signal frame on its stack left over from a handler that has returned? */
bool dp_frames_left_over(const struct dp_frames *f, const struct dp_process *p, const struct dp_held *h);

#endif

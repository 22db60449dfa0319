/* SPDX-License-Identifier: MIT */
/*
 * The consumer of the rings. Works on the tool's own mapping of the data region (struct dp_control and what its offsets lead
 * to) and knows nothing of the target otherwise. The region is the target's to write: whatever it holds is checked.
 */
#ifndef DP_INJECTOR_DRAIN_H
#define DP_INJECTOR_DRAIN_H

#include "injector/injector.h"

struct dp_drain;

/* `control` is filled in already; its layout is remembered and not read again. `size` is that of the whole region. */
struct dp_error *dp_drain_create(struct dp_control *control, size_t size, struct dp_drain **ret) DP_MUST_CHECK;
/* The region is mapped, not a copy of it: dp_drain_reap() gives memory back that rings do not need. */
void dp_drain_give_back(struct dp_drain *d);
/* Accepts NULL. */
struct dp_drain *dp_drain_destroy(struct dp_drain *d);

/*
 * Calls `each` for what the rings hold, by time. hit->ns never falls, not even from call to call: a hit newer than the start
 * of the call waits for the next one, and so do those newer than a hit that a thread is just writing (but not longer than a
 * tenth of a second; if it takes longer, that hit gets the time of the one before it; hit->tsc is always the thread's own).
 * `last`: nobody writes any more: takes everything, and skips and counts what was reserved and never written.
 */
struct dp_error *dp_drain_run(struct dp_drain *d, bool last, dp_hit_fn each, void *data) DP_MUST_CHECK;

/* From within `each`: the run ends behind this hit. Those that it has collected come first in the next one. */
void dp_drain_break(struct dp_drain *d);

/* Like a last run, but others still write: what is being written at this moment stays. For consumers that leave. */
struct dp_error *dp_drain_flush(struct dp_drain *d, dp_hit_fn each, void *data) DP_MUST_CHECK;

/* Whose the records from the slot's tail on are, until one says otherwise. */
pid_t dp_drain_tid(const struct dp_drain *d, uint32_t slot);

/*
 * What was lost, for one probe. What cannot be told apart by probe (abandoned, damaged) is counted for probe 0, so that the
 * sum over all probes is right.
 */
void dp_drain_loss(const struct dp_drain *d, unsigned probe, struct dp_loss *ret);
/* The agent's own counters of one probe. */
void dp_loss_of(const struct dp_lost *lost, struct dp_loss *ret);

/*
 * Gives the slots of threads that are gone back to the target. `alive` is asked for each recording thread, by its id in
 * the target's pid namespace, and must not say no for one that may still run the target's code. A slot that still holds records
 * is given back by a later call, after dp_drain_run().
 */
void dp_drain_reap(struct dp_drain *d, bool (*alive)(pid_t ns_tid, void *data), void *data);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The consumer of the rings. It reads the tool's own mapping of the data region (struct dp_control and what its offsets refer
 * to), and nothing else of the target. The target can write to the region, so everything in it is checked.
 */
#ifndef DP_INJECTOR_RING_DRAIN_H
#define DP_INJECTOR_RING_DRAIN_H

#include "injector/injector.h"
#include "injector/ring/clock.h"

struct dp_drain;

/* `control` is already filled in; its layout is saved and not read again. `size` is that of the whole region. */
struct dp_error *dp_drain_create(struct dp_control *control, size_t size, struct dp_drain **ret) DP_MUST_CHECK;
/*
 * The same for a copy of the region of a process that is gone, maybe on another machine: all passes must be the last. `at`: two
 * readings of that machine's clocks, which make all times; no record is newer than the count `newest`.
 */
struct dp_drain_past {
	struct dp_clock_pair at[2];
	uint64_t newest;
};
struct dp_error *dp_drain_create_past(struct dp_control *control, size_t size, const struct dp_drain_past *past,
                                      struct dp_drain **ret) DP_MUST_CHECK;
/* Call it if the region is mapped, not copied: dp_drain_reap() then returns memory that rings do not need. */
void dp_drain_give_back(struct dp_drain *d);
/* Accepts NULL. */
struct dp_drain *dp_drain_destroy(struct dp_drain *d);

/*
 * Calls `each` for the records in the rings, by time. hit->ns never decreases, not even across calls: a hit newer than the start
 * of the call waits for the next one, and so do those newer than a hit that a thread is just writing (for at most a tenth of a
 * second; if writing takes longer, that hit gets the time of the one before it; hit->tsc is always the thread's own). `last`: no
 * thread writes any more: takes everything, and skips and counts what was reserved and never written.
 */
struct dp_error *dp_drain_run(struct dp_drain *d, bool last, dp_hit_fn each, void *data) DP_MUST_CHECK;

/* Call it from `each`: the run ends after this hit. Hits already collected come first in the next run. */
void dp_drain_break(struct dp_drain *d);

/* Like a last run, but threads still write: records being written at this moment stay. For consumers that leave. */
struct dp_error *dp_drain_flush(struct dp_drain *d, dp_hit_fn each, void *data) DP_MUST_CHECK;

/*
 * Calls `each` for the records of one ring after the other; those of a ring are in order, and none waits for the next call but
 * those that a thread is just writing. Much faster, because nothing is copied or compared. `last` as above. Use either this or
 * dp_drain_run() for all passes.
 */
void dp_drain_lanes(struct dp_drain *d, bool last, dp_hits_fn each, void *data);

/*
 * Hits that wait where their ring is full: struct dp_on_full, which the caller has filled in. Each run from now on lets them try
 * again, until this is called with false: then those that wait go on, and nobody waits any more.
 */
void dp_drain_serve(struct dp_drain *d, bool on);
/* Has a hit begun to wait since the last run read the rings? */
bool dp_drain_awaited(const struct dp_drain *d);
/* Sleeps until one does, for `ms` at most; not at all if hits do not wait. */
void dp_drain_rest(const struct dp_drain *d, int ms);

/* The thread of the records from the slot's tail on, until a record names another. */
pid_t dp_drain_tid(const struct dp_drain *d, uint32_t slot);

/*
 * The losses of one probe. Losses of unknown probes (abandoned, damaged) count for probe 0, so that the sum over all probes is
 * right.
 */
void dp_drain_loss(const struct dp_drain *d, unsigned probe, struct dp_loss *ret);
/* The agent's own counters of one probe. */
void dp_loss_of(const struct dp_lost *lost, struct dp_loss *ret);

/*
 * Frees the slots of threads that are gone. `alive` is asked for each recording thread, by its id in the target's pid namespace,
 * and must not return false for one that may still run the target's code. A slot that still has records is freed by a later call,
 * after dp_drain_run().
 */
void dp_drain_reap(struct dp_drain *d, bool (*alive)(pid_t ns_tid, void *data), void *data);

/* The owner of a slot in a process that is not the target. */
struct dp_slot_owner {
	uint32_t process; /* its number (agent/abi.h); 0: the target, of which only the process is asked for */
	pid_t pid, tid;   /* as the process knows them; 0: not known */
};
enum dp_owner_state {
	DP_OWNER_LIVES,
	DP_OWNER_ENDED,         /* its thread has */
	DP_OWNER_PROCESS_ENDED, /* its slots are free for all */
};
typedef enum dp_owner_state (*dp_owner_fn)(const struct dp_slot_owner *owner, void *data);
/* Fork children record, too: dp_drain_reap() asks `state` for them, with the same `data`. */
void dp_drain_follow(struct dp_drain *d, dp_owner_fn state);

#endif

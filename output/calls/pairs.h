/* SPDX-License-Identifier: MIT */
/*
 * Which exit belongs to which entry of a system call. An exit ends the newest call of its thread that has the same number and the
 * same arguments, which the kernel leaves in their registers; calls begun after that one (in a signal handler that jumped out)
 * have ended without an exit. After a loss of events such a pair may be of two calls alike: then its duration is not known, and
 * the exit alone says the rest.
 */
#ifndef DP_OUTPUT_CALLS_PAIRS_H
#define DP_OUTPUT_CALLS_PAIRS_H

#include "output/calls/line.h"

struct dp_held_call {               /* a call that has not ended yet */
	struct dp_event e;          /* with a payload and a name of its own */
	struct dp_held_call *outer; /* the one that it interrupted */
	int32_t nr;
	bool unsure;    /* events were lost since */
	unsigned shown; /* arguments that were written, plus 1; 0: nothing was */
};

struct dp_call_pairs;                                                                       /* opaque */
struct dp_call_pairs *dp_call_pairs_create(const struct dp_event_class *classes, size_t n); /* NULL: out of memory */
struct dp_call_pairs *dp_call_pairs_destroy(struct dp_call_pairs *p);
/* Class `i` has other fields now. */
void dp_call_pairs_renew(struct dp_call_pairs *p, unsigned i);
/* Are the events of this class shown as lines of calls? */
bool dp_call_pairs_takes(struct dp_call_pairs *p, unsigned class);
bool dp_call_pairs_is_exit(const struct dp_call_pairs *p, unsigned class);
/* Do the run's probes record the entries of this exit's call? */
bool dp_call_pairs_has_entry(const struct dp_call_pairs *p, unsigned class);
/* Is this field shown in the line? */
bool dp_call_pairs_shows(const struct dp_call_pairs *p, unsigned class, const struct dp_field *field);
void dp_call_pairs_see(struct dp_call_pairs *p, const struct dp_event *e, struct dp_call_seen *ret);
/* An entry whose call ends some time. NULL: out of memory. */
struct dp_held_call *dp_call_pairs_hold(struct dp_call_pairs *p, const struct dp_event *e, int32_t nr);
/* The newest call of the thread, or NULL. */
struct dp_held_call *dp_call_pairs_newest(struct dp_call_pairs *p, const struct dp_event *e);
/*
 * The call that this exit ends; `entry` is filled in and valid until dp_call_pairs_end(). NULL: it began before the first event,
 * or its entry was lost.
 */
const struct dp_held_call *dp_call_pairs_match(struct dp_call_pairs *p, const struct dp_event *e, const struct dp_call_seen *exit,
                                               struct dp_call_seen *entry);
/* What the two say together; `h` may be NULL. Borrows both. */
struct dp_call_line dp_call_line_of(const struct dp_event *e, const struct dp_call_seen *exit, const struct dp_held_call *h,
                                    const struct dp_call_seen *entry);
/* Forgets it, and the calls that the thread has begun since. Accepts NULL. */
void dp_call_pairs_end(struct dp_call_pairs *p, const struct dp_held_call *h);
/* Events were lost: no call that has begun is sure any more. */
void dp_call_pairs_gap(struct dp_call_pairs *p);
/* Calls `each` for the newest call of each thread, oldest first; it may not change the pairs. */
void dp_call_pairs_each(struct dp_call_pairs *p, void (*each)(struct dp_held_call *h, void *data), void *data);

#endif

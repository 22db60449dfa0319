/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of hits: the tool's side of agent/ring/park.c. A thread whose probe matched waits in the agent until this tool has
 * looked at the process; for as long as was said, and not at all where nobody answers.
 */
#ifndef DP_INJECTOR_PARK_H
#define DP_INJECTOR_PARK_H

#include "injector/injector.h"

#include <sys/user.h>

struct dp_park_limits {
	uint32_t hits;        /* so many snapshots at most */
	uint64_t interval_ns; /* so long between two */
	uint64_t wait_ns;     /* so long a thread waits; then it goes on, and the hit is counted as late */
};
struct dp_park_watch {        /* private to park.c */
	uint64_t stuck_ns;    /* since when the place has been taken, or 0 */
	uint64_t filtered_ns; /* when a filter was looked for */
	size_t next;          /* thread */
	bool caged;
};
/* DP_TAG_SECCOMP under a filter: waiting takes system calls. */
struct dp_error *dp_park_check(const struct dp_target *t) DP_MUST_CHECK;
/* Before install: from the first hit on hits wait. */
void dp_park_want(struct dp_target *t, const struct dp_park_limits *limits);
/* Nobody waits any more; who does is let go. */
void dp_park_leave(struct dp_target *t);

struct dp_park_hit {
	uint64_t id;  /* what the hit's record says */
	pid_t ns_tid; /* in the target's pid namespace */
	unsigned probe;
	uint64_t seen_ns;             /* when dp_park_look() found it */
	struct user_regs_struct regs; /* the program's own at the probe; segments and orig_rax are not filled in */
};
/* Does a thread wait? */
bool dp_park_look(struct dp_target *t, struct dp_park_hit *ret);
/*
 * With all threads held: is it this hit's thread that still waits? If so it waits on, for as long as it would have anyway, and
 * its record will have the id. May be called at each of several holds. False: it went on before.
 */
bool dp_park_take(struct dp_target *t, const struct dp_park_hit *hit);
/* Behind dp_park_take(): does it wait still, and long enough for another hold? */
bool dp_park_waits(const struct dp_target *t, const struct dp_park_hit *hit);
/* Enough was seen of the one that was taken: it goes on. */
void dp_park_done(struct dp_target *t);
/* Whoever waits goes on, without a snapshot: its record will have no id. */
bool dp_park_release(struct dp_target *t); /* false: nobody waited */
/*
 * Has a thread come under a seccomp filter since? Then nobody waits from then on: waiting takes system calls. It is looked for by
 * dp_park_look(), now and then; what is met in between may be killed for its wait.
 */
bool dp_park_is_caged(const struct dp_target *t);

/* Of a limit that several targets share: so many more here, and none before that much time. Who waits already is not touched. */
void dp_park_bound(struct dp_target *t, uint32_t left, uint64_t rest_ns);

struct dp_park_counts {
	uint64_t late, missed, over; /* hits without a snapshot: not answered in time; meanwhile; beyond the limits */
	uint32_t left;
};
void dp_park_counts(const struct dp_target *t, struct dp_park_counts *ret);

#endif

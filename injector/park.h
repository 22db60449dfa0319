/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of hits: the tool's side of agent/park.c. A thread whose probe matched waits in the agent until this tool has looked
 * at the process; for as long as was said, and not at all where nobody answers.
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
	struct user_regs_struct regs; /* the program's own at the probe; segments and orig_rax are not filled in */
};
/* Does a thread wait? */
bool dp_park_look(struct dp_target *t, struct dp_park_hit *ret);
/*
 * With all threads held: is it this hit's thread that still waits? If so it is answered: its record will have the id. False: it
 * went on before.
 */
bool dp_park_take(struct dp_target *t, const struct dp_park_hit *hit);
/* The threads run again: lets the one go that was taken. Without dp_park_take(): it goes on without a snapshot. */
void dp_park_release(struct dp_target *t);

struct dp_park_counts {
	uint64_t late, missed, over; /* hits without a snapshot: not answered in time; meanwhile; beyond the limits */
	uint32_t left;
};
void dp_park_counts(const struct dp_target *t, struct dp_park_counts *ret);

#endif

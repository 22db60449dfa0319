/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of hits: the tool's side of agent/ring/park.c. A thread whose probe matched waits in the agent until this tool has
 * inspected the process: for a bounded time, and not at all if no tool answers.
 */
#ifndef DP_INJECTOR_PARK_H
#define DP_INJECTOR_PARK_H

#include "injector/injector.h"

#include <sys/user.h>

struct dp_park_limits {
	bool on;              /* hits wait */
	uint32_t hits;        /* most snapshots */
	uint64_t interval_ns; /* least time between two */
	uint64_t rest_ns;     /* none before */
	uint64_t wait_ns;     /* longest wait of a thread; then it resumes, and the hit counts as late */
};
/* DP_TAG_SECCOMP under a filter: waiting takes system calls. */
struct dp_error *dp_park_check(const struct dp_target *t) DP_MUST_CHECK;
/* Before install: hits wait from the first one on. */
void dp_park_want(struct dp_target *t, const struct dp_park_limits *limits);
/* Ends waiting: releases a waiting thread, and no hit waits any more. */
void dp_park_leave(struct dp_target *t);

struct dp_park_hit {
	uint64_t id;  /* as in the hit's record */
	pid_t pid;    /* the target, or a fork child of it (follow) */
	pid_t ns_tid; /* in its own pid namespace */
	unsigned probe;
	uint64_t seen_ns;             /* when dp_park_inspect() found it */
	struct user_regs_struct regs; /* the program's at the probe; segments and orig_rax are not filled in */
};
/* Does a thread wait? Where threads have entered a seccomp filter (dp_target_is_caged()), nobody does from then on. */
bool dp_park_inspect(struct dp_target *t, struct dp_park_hit *ret);
/*
 * Call it with all threads held. Does this hit's thread still wait? If so it keeps waiting, for as long as it would have anyway,
 * and its record will have the id. May be called at each of several holds. False: it resumed before.
 */
bool dp_park_take(struct dp_target *t, const struct dp_park_hit *hit);
/* After dp_park_take(): does it still wait, and long enough for another hold? */
bool dp_park_waits(const struct dp_target *t, const struct dp_park_hit *hit);
/* The snapshot is complete: releases the thread. */
void dp_park_done(struct dp_target *t);
/* Releases a waiting thread without a snapshot: its record will have no id. */
bool dp_park_release(struct dp_target *t); /* false: none waited */
/* For a limit shared by targets: at most `left` more here, none before `rest_ns`. Does not affect a waiting thread. */
void dp_park_bound(struct dp_target *t, uint32_t left, uint64_t rest_ns);

struct dp_park_counts {
	uint64_t late, missed, over; /* hits without a snapshot: answered too late; while another waited; beyond the limits */
	uint32_t left;
};
void dp_park_counts(const struct dp_target *t, struct dp_park_counts *ret);

#endif

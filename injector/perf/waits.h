/* SPDX-License-Identifier: MIT */
/* Waits of threads, from records of their switches. Reads nothing itself: the records may come from several rings, in any order.
 */
#ifndef DP_INJECTOR_PERF_WAITS_H
#define DP_INJECTOR_PERF_WAITS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_wait_stack {
	uint32_t image, n;
	uint64_t pc[];
};

enum dp_switch_kind {
	DP_SWITCH_STACK,     /* the thread's stack, just before it leaves the processor */
	DP_SWITCH_OUT,       /* it has left the processor */
	DP_SWITCH_PREEMPTED, /* the same, although it could go on */
	DP_SWITCH_IN,
	DP_SWITCH_BORN,
	DP_SWITCH_ENDED,
	DP_SWITCH_LOST, /* records between from_ns and ns are missing, of any thread */
};
struct dp_switch {
	enum dp_switch_kind kind;
	pid_t tid;
	uint64_t ns, from_ns;
	struct dp_wait_stack *stack; /* of DP_SWITCH_STACK, from malloc() */
};

struct dp_wait {
	pid_t tid;
	uint64_t from_ns, to_ns;
	bool preempted;
	bool open;                         /* it had not ended when the profile did */
	const struct dp_wait_stack *stack; /* NULL: it was lost */
};
typedef void dp_wait_each(const struct dp_wait *wait, void *data);

struct dp_waits_stats {
	uint64_t early, early_ns; /* waits that had begun before the profile, and their time in it */
	uint64_t broken;          /* waits left out, because a record was lost between their ends */
};

struct dp_waits;
struct dp_error *dp_waits_create(struct dp_waits **ret) DP_MUST_CHECK;
struct dp_waits *dp_waits_destroy(struct dp_waits *w);
void dp_waits_begin(struct dp_waits *w, uint64_t ns); /* the profile's start; else no wait is early */
/* Takes ownership of the stack. */
void dp_waits_add(struct dp_waits *w, const struct dp_switch *s);
/* All records until `until_ns` have been added: passes on the waits that ended by then. */
void dp_waits_settle(struct dp_waits *w, uint64_t until_ns, dp_wait_each *each, void *data);
/* The profile ends: passes on the waits that have not ended, too. */
void dp_waits_end(struct dp_waits *w, uint64_t ns, dp_wait_each *each, void *data);
/* Was there any record of this thread? */
bool dp_waits_knows(const struct dp_waits *w, pid_t tid);
void dp_waits_stats(const struct dp_waits *w, struct dp_waits_stats *ret);

#endif

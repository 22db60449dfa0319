/* SPDX-License-Identifier: MIT */
/* How long threads were stopped. Counted at each thread's release, so that no hold is missed. */
#ifndef DP_INJECTOR_TRACEE_STOP_HOLDS_H
#define DP_INJECTOR_TRACEE_STOP_HOLDS_H

#include "injector/tracee/tracee.h"

struct dp_holds {
	uint64_t longest_ns; /* of one thread */
	uint64_t sum_ns;     /* time during which at least one was held */
	unsigned stops;      /* times one was stopped, or all together */
	unsigned vain;       /* of these: given up because not all threads stopped in time */
};

/* The thread stopped; its registers are read. */
void dp_holds_took(struct dp_held *h);
/* The thread stopped, but still ran at `since_ns`. */
void dp_holds_began(struct dp_held *h, uint64_t since_ns);
/* The thread is released. */
void dp_holds_ended(const struct dp_held *h);
/* Not all threads stopped. */
void dp_holds_in_vain(void);
/* The last held thread is released (dp_watchdog_stop()). */
void dp_holds_over(void);
/* Returns the figures since the last call, and resets them. */
struct dp_holds dp_holds_take(void);

#endif

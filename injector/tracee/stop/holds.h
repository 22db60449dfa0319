/* SPDX-License-Identifier: MIT */
/* How long threads were held, as they felt it: counted where each of them is let go, so that no hold is forgotten. */
#ifndef DP_INJECTOR_HOLDS_H
#define DP_INJECTOR_HOLDS_H

#include "injector/tracee/tracee.h"

struct dp_holds {
	uint64_t longest_ns; /* of a thread */
	uint64_t sum_ns;     /* during which at least one was held */
	unsigned stops;      /* times that one was, or all together */
	unsigned vain;       /* of these: given up, since not all came to stand in time */
};

/* The thread came to stand, its registers are read. */
void dp_holds_took(struct dp_held *h);
/* A stop was seen in a thread that still ran at `since_ns`. */
void dp_holds_began(struct dp_held *h, uint64_t since_ns);
/* The thread goes on. */
void dp_holds_ended(const struct dp_held *h);
/* Not all came to stand. */
void dp_holds_in_vain(void);
/* The last one that was held goes on (dp_watchdog_stop()). */
void dp_holds_over(void);
/* What there was since the last call. */
struct dp_holds dp_holds_take(void);

#endif

/* SPDX-License-Identifier: MIT */
/* Threads that wait for room in their ring: the tool's side of agent/ring/full.c. Private to ring/. */
#ifndef DP_INJECTOR_RING_WAITERS_H
#define DP_INJECTOR_RING_WAITERS_H

#include "agent/abi.h"

#include <stdbool.h>

struct dp_waiters {
	struct dp_on_full *page; /* NULL: nobody waits */
	uint32_t seen;           /* `waits` at the last look */
};
/* Begins with the next look; or ends all waiting. `page` is shared with the target. */
void dp_waiters_serve(struct dp_waiters *w, struct dp_on_full *page);
/* A ring has been read: whoever waits tries again. */
void dp_waiters_look(struct dp_waiters *w);
/* All rings have. */
void dp_waiters_pass(struct dp_waiters *w);
/* Has a thread begun to wait since the last look? */
bool dp_waiters_any(const struct dp_waiters *w);
/* Sleeps until one does, for `ms` at most. */
void dp_waiters_rest(const struct dp_waiters *w, int ms);

#endif

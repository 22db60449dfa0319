/* SPDX-License-Identifier: MIT */
/* Consecutive hits of one thread, for consumers that do not need the order of time over all threads. */
#ifndef DP_INJECTOR_RING_HITS_H
#define DP_INJECTOR_RING_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_hits_item {
	uint64_t ns;            /* CLOCK_MONOTONIC, never decreases within a lane */
	const uint8_t *payload; /* the target can write there: copy it, then check it */
	uint16_t probe;
	uint16_t len;
	bool damaged; /* set by the consumer: the payload does not fit the probe's fields */
};

struct dp_hits { /* valid during the call; the rest as in struct dp_hit (injector.h) */
	pid_t pid, tid;
	pid_t inner_pid, inner_tid;
	uint64_t lane;
	struct dp_hits_item *item;
	size_t n; /* at least 1 */
};
typedef void (*dp_hits_fn)(const struct dp_hits *hits, void *data);

#endif

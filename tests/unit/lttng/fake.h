/* SPDX-License-Identifier: MIT */
/* A session that records the event of a handle, without LTTng: the test's own operations see what a hit passes. */
#ifndef DP_TESTS_UNIT_LTTNG_FAKE_H
#define DP_TESTS_UNIT_LTTNG_FAKE_H

#include "tests/sinkhost/host.h"

struct fake {
	unsigned reserved, committed;
	uint64_t rsp; /* on which the last event was reserved */
	size_t size;  /* of the last payload */
	uint8_t payload[4096];
	void *ip;
	void (*inside)(void); /* called while the event is reserved */
};
extern struct fake fake;

/*
 * Loads the sink, registers one event "e" with `value`, makes `probe` of it and lets the fake session record it. Primes no
 * thread.
 */
struct dp_sink *fake_session(struct host_event *probe);

#endif

/* SPDX-License-Identifier: MIT */
/* Shared by C and C++: values from a generator, and one line of JSON per call with the values that a probe must show. */
#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state = 88172645463325252u;

static inline uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static inline uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Gives dynprobe time to drain the rings. It does not sleep: the tool may need a thread that is not in a timed call. */
static inline void breathe(int i)
{
	if (i % 64 != 63)
		return;
	fflush(stdout);
	for (const uint64_t start = now_ns(); now_ns() - start < 2000000;)
		sched_yield();
}

/* SPDX-License-Identifier: MIT */
/* What both languages share: values from a generator, and one line of JSON for each call: what a probe in it has to see. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state = 88172645463325252u;

static inline uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Rings are drained every few milliseconds. */
static inline void breathe(int i)
{
	if (i % 64 == 63) {
		fflush(stdout);
		usleep(3000);
	}
}

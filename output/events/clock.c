/* SPDX-License-Identifier: MIT */
#include "output/output.h"

#include "base/boot_id.h"

#include <pthread.h>
#include <time.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int64_t offset;
static bool other;

static int64_t now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The best of several measurements: the wall clock between two readings of the monotonic clock. */
static void measure(void)
{
	int64_t best = INT64_MAX;
	for (int i = 0; i < 16; i++) {
		int64_t before = now(CLOCK_MONOTONIC), wall = now(CLOCK_REALTIME), after = now(CLOCK_MONOTONIC);
		if (after - before >= best)
			continue;
		best = after - before;
		offset = wall - (before + best / 2);
	}
}

static void keep(void)
{
}

int64_t dp_clock_offset(void)
{
	pthread_once(&once, measure);
	return offset;
}

void dp_clock_set_offset(int64_t recorded)
{
	pthread_once(&once, keep);
	offset = recorded;
	other = true;
}

/* LTTng identifies its clock by the boot ID, too. */
void dp_clock_boot(char id[DP_BOOT_ID])
{
	if (other)
		id[0] = '\0';
	else
		dp_boot_id(id);
}

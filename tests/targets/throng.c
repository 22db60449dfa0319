/* SPDX-License-Identifier: MIT */
/*
 * throng SLEEPERS [GAP_US]: so many threads wait in pause(); one calls foo() in a loop and records each gap of at least GAP_US
 * (default 300). At SIGTERM prints "gap BEGIN_NS LENGTH_NS" (CLOCK_MONOTONIC) for each, and the result.
 */
#include "target_foo.h"

#include <pthread.h>

#define GAPS 65536

struct gap {
	uint64_t begin, length;
};
static struct gap gap[GAPS];
static size_t ngaps;
static long bad;

static void *sleep_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *spin(void *arg)
{
	const uint64_t least = (uint64_t)(uintptr_t)arg;
	uint64_t last = target_now_ns();
	for (unsigned i = 0; !target_stop; i++) {
		bad += foo(i, "throng") != target_expected(i, "throng");
		const uint64_t now = target_now_ns();
		if (now - last >= least && ngaps < GAPS)
			gap[ngaps++] = (struct gap){last, now - last};
		last = now;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const long sleepers = target_number(argc, argv, 1, 4), least_us = target_number(argc, argv, 2, 300);
	pthread_attr_t attr;
	pthread_t id;

	target_stop_on_term();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (long i = 0; i < sleepers; i++)
		if (pthread_create(&id, &attr, sleep_for_ever, NULL) != 0)
			return 2;
	if (pthread_create(&id, &attr, spin, (void *)(least_us * 1000)) != 0)
		return 2;
	target_ready();
	pthread_join(id, NULL);
	for (size_t i = 0; i < ngaps; i++)
		printf("gap %llu %llu\n", (unsigned long long)gap[i].begin, (unsigned long long)gap[i].length);
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}

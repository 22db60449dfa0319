/* SPDX-License-Identifier: MIT */
/*
 * gaps [THREADS]: threads that sleep for a short time, call foo(), and record the longest time between two calls. A thread that
 * is stopped, or that waits for a stopped one, has a gap. At SIGTERM: prints "longest gap N us" of all, and the result.
 */
#include "target_foo.h"

#include <pthread.h>

#define MOST 64

static _Atomic long bad;

static uint64_t now_us(void)
{
	return target_now_ns() / 1000;
}

static void *run(void *arg)
{
	uint64_t *longest = arg, last = now_us();
	for (unsigned i = 0; !target_stop; i++) {
		target_sleep_us(200);
		bad += foo(i, "gap") != target_expected(i, "gap");
		const uint64_t now = now_us();
		if (now - last > *longest)
			*longest = now - last;
		last = now;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static uint64_t longest[MOST];
	pthread_t thread[MOST];
	const long n = target_number(argc, argv, 1, 6);
	uint64_t most = 0;

	target_stop_on_term();
	for (long i = 1; i < n && i < MOST; i++)
		if (pthread_create(&thread[i], NULL, run, &longest[i]) != 0)
			return 2;
	target_ready();
	run(&longest[0]);
	for (long i = 1; i < n && i < MOST; i++)
		pthread_join(thread[i], NULL);
	for (long i = 0; i < n && i < MOST; i++)
		most = longest[i] > most ? longest[i] : most;
	printf("longest gap %llu us\nRESULT %s\n", (unsigned long long)most, bad ? "BAD" : "OK");
	return bad != 0;
}

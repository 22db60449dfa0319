/* SPDX-License-Identifier: MIT */
/*
 * crew THREADS BURST CALLS: threads with small stacks. At SIGUSR1 each calls foo() BURST times without a pause, and prints
 * "BURST"; at SIGUSR2 CALLS times. Then RESULT.
 */
#include "target.h"

#include <pthread.h>

static volatile sig_atomic_t stage;
static long burst, calls;
static pthread_barrier_t barrier;

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

static void on_signal(int sig)
{
	stage = sig == SIGUSR1 ? 1 : 2;
}

static void await(int wanted)
{
	while (stage < wanted)
		target_sleep_us(1000);
}

static long call(long n)
{
	unsigned a = 1, b = 1;
	long bad = 0;
	for (long i = 0; i < n; i++) {
		a = foo(a);
		b = b * 3 + 1;
		bad += a != b;
	}
	return bad;
}

static void *work(void *arg)
{
	long *bad = arg;
	await(1);
	*bad += call(burst);
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
		printf("BURST\n");
		fflush(stdout);
	}
	await(2);
	*bad += call(calls);
	return NULL;
}

int main(int argc, char **argv)
{
	enum { MOST = 2000 };
	static pthread_t thread[MOST];
	static long bad[MOST];
	const long n = target_number(argc, argv, 1, 1);
	long sum = 0;
	pthread_attr_t attr;

	burst = target_number(argc, argv, 2, 0);
	calls = target_number(argc, argv, 3, 0);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	for (long i = 0; i < n && i < MOST; i++)
		if (pthread_create(&thread[i], &attr, work, &bad[i]))
			return 2;
	target_ready();
	for (long i = 0; i < n && i < MOST; i++) {
		pthread_join(thread[i], NULL);
		sum += bad[i];
	}
	printf("RESULT %s\n", sum ? "BAD" : "OK");
	return sum != 0;
}

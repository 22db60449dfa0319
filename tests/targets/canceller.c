/* SPDX-License-Identifier: MIT */
/* canceller: starts threads one after the other and cancels them at random instructions of probed functions, until SIGTERM. */
#include "target.h"

#include <pthread.h>
#include <sched.h>

static _Atomic bool started;
static _Atomic long cleaned;

TARGET_PROBED unsigned spin(unsigned n)
{
	for (unsigned i = 0; i < 100; i++)
		n = n * 31 + i;
	return n;
}

TARGET_PROBED unsigned twice(unsigned n)
{
	return spin(n) + spin(n + 1);
}

static void clean(void *arg)
{
	(void)arg;
	cleaned++;
}

static void *thread(void *arg)
{
	volatile unsigned n = 1;
	pthread_cleanup_push(clean, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	started = true;
	for (;;)
		n = twice(n);
	pthread_cleanup_pop(0);
	return arg;
}

int main(void)
{
	long bad = 0, unclean = 0, threads = 0;

	target_stop_on_term();
	target_ready();
	for (; !target_stop; threads++) {
		const long before = cleaned;
		void *result = NULL;
		pthread_t t;
		started = false;
		pthread_create(&t, NULL, thread, NULL);
		while (!started)
			sched_yield();
		target_sleep_us(200);
		pthread_cancel(t);
		pthread_join(t, &result);
		bad += result != PTHREAD_CANCELED;
		unclean += cleaned != before + 1;
	}
	if (unclean)
		fprintf(stderr, "%ld of %ld threads ended without their cleanup handler\n", unclean, threads);
	printf("RESULT %s\n", bad || unclean ? "BAD" : "OK");
	return bad || unclean;
}

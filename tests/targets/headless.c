/* SPDX-License-Identifier: MIT */
/* headless: the main thread ends at once (pthread_exit), two others run until SIGTERM. */
#include "target.h"

#include <pthread.h>

static _Atomic long wrong;
static pthread_t first;

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

static void *call_foo(void *arg)
{
	while (!target_stop) {
		wrong += foo(5) != 16;
		target_sleep_us(500);
	}
	return arg;
}

static void *begin(void *arg)
{
	pthread_t t;
	pthread_join(first, NULL);
	pthread_create(&t, NULL, call_foo, NULL);
	target_ready();
	call_foo(NULL);
	pthread_join(t, NULL);
	printf("RESULT %s wrong %ld\n", wrong ? "BAD" : "OK", (long)wrong);
	fflush(stdout);
	_exit(wrong != 0);
	return arg;
}

int main(void)
{
	pthread_t t;
	target_stop_on_term();
	first = pthread_self();
	pthread_create(&t, NULL, begin, NULL);
	pthread_exit(NULL);
}

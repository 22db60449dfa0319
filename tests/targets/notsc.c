/* SPDX-License-Identifier: MIT */
/*
 * notsc: its threads may not read the time stamp counter (prctl PR_SET_TSC, inherited). If one of them reads it, the program
 * dies. So it reads no clock: the vdso uses that counter.
 */
#include "target.h"

#include <pthread.h>
#include <sys/prctl.h>

static _Atomic long wrong;

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

int main(void)
{
	pthread_t t;
	target_stop_on_term();
	wrong = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0;
	pthread_create(&t, NULL, call_foo, NULL);
	target_ready();
	call_foo(NULL);
	pthread_join(t, NULL);
	printf("RESULT %s wrong %ld\n", wrong ? "BAD" : "OK", (long)wrong);
	return wrong != 0;
}

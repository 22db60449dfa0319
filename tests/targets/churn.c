/* SPDX-License-Identifier: MIT */
/* churn: short-lived threads, four at a time, that call foo() once or twice. Until SIGTERM. */
#include "target_foo.h"

#include <pthread.h>

static _Atomic long bad;

static void *brief(void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;
	for (unsigned k = 0; k <= (i & 1); k++)
		bad += foo(i + k, "churn") != target_expected(i + k, "churn");
	return NULL;
}

int main(void)
{
	target_stop_on_term();
	target_ready();
	for (uintptr_t i = 0; !target_stop; i += 4) {
		pthread_t t[4];
		for (uintptr_t k = 0; k < 4; k++)
			pthread_create(&t[k], NULL, brief, (void *)(i + k));
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], NULL);
		target_sleep_us(500);
	}
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}

/* SPDX-License-Identifier: MIT */
/* turns: threads that wait for a short time in one kind of call after the other. */
#include "target.h"

#include <poll.h>
#include <pthread.h>

static void *take_turns(void *arg)
{
	while (!target_stop) {
		const struct timespec moment = {.tv_nsec = 300000};
		clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
		ppoll(NULL, 0, &moment, NULL);
	}
	return arg;
}

int main(void)
{
	pthread_t thread[4];
	target_stop_on_term();
	for (unsigned i = 0; i < 4; i++)
		if (pthread_create(&thread[i], NULL, take_turns, NULL))
			return 1;
	target_ready();
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	printf("RESULT OK\n");
	return 0;
}

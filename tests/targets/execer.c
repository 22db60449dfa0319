/* SPDX-License-Identifier: MIT */
/*
 * execer MS [thread] [COMMAND...]: calls foo() for MS milliseconds (0: until SIGUSR1), then executes COMMAND (default: itself,
 * once; the second run ends at once, or at SIGTERM if the first one waited for SIGUSR1).
 */
#include "target.h"

#include <pthread.h>

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

static char **next;

static void *exec_in_thread(void *arg)
{
	execvp(next[0], next);
	return arg;
}

static int second_life(bool waits)
{
	puts("RESULT OK second life");
	fflush(stdout);
	while (waits && !target_stop)
		target_sleep_us(1000);
	return 7;
}

int main(int argc, char **argv)
{
	long ms = target_number(argc, argv, 1, 0);
	char *self[] = {argv[0], (char *)(ms ? "-1" : "-2"), NULL};
	bool threaded = argc > 2 && strcmp(argv[2], "thread") == 0;
	uint64_t until = target_now_ms() + (uint64_t)ms;

	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = target_on_term, .sa_flags = SA_RESTART}, NULL);
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = target_on_term, .sa_flags = SA_RESTART}, NULL);
	if (ms < 0)
		return second_life(ms == -2);
	target_ready();
	for (unsigned i = 0; ms ? i < 20 || target_now_ms() < until : !target_stop; i++) {
		if (foo(i) != i * 3 + 1)
			return 1;
		target_sleep_us(500);
	}
	next = argc > 2 + threaded ? argv + 2 + threaded : self;
	if (threaded) {
		pthread_t t;
		pthread_create(&t, NULL, exec_in_thread, NULL);
		pthread_join(t, NULL);
	}
	exec_in_thread(NULL);
	return 1;
}

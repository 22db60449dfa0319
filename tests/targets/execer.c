/* SPDX-License-Identifier: MIT */
/* execer MS [thread] [COMMAND...]: calls foo() for MS milliseconds, then executes COMMAND (default: itself, once). */
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

int main(int argc, char **argv)
{
	char *self[] = {argv[0], (char *)"0", NULL};
	long ms = target_number(argc, argv, 1, 0);
	bool threaded = argc > 2 && strcmp(argv[2], "thread") == 0;
	uint64_t until = target_now_ms() + (uint64_t)ms;

	target_ready();
	for (unsigned i = 0; target_now_ms() < until; i++) {
		if (foo(i) != i * 3 + 1)
			return 1;
		target_sleep_us(500);
	}
	if (ms == 0) {
		target_sleep_us(300000); /* time to be noticed in */
		puts("RESULT OK second life");
		return 7;
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

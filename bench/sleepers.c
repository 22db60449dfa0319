/* SPDX-License-Identifier: MIT */
/* N threads, two of them spinning, the others asleep. bench/run.py stops them. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile long sum;

__attribute__((noinline)) long tick(long n)
{
	return sum + n * 3;
}

static void *run(void *arg)
{
	for (long i = 0;; i++) {
		sum = tick(i);
		if ((intptr_t)arg > 1)
			usleep(100000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 64;
	for (intptr_t i = 1; i < threads; i++) {
		pthread_t id;
		pthread_create(&id, NULL, run, (void *)i);
	}
	printf("READY\n");
	fflush(stdout);
	run((void *)(intptr_t)2);
}

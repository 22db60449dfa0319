/* SPDX-License-Identifier: MIT */
/*
 * libcuser [THREADS]: threads that call the functions of libc that tracing itself uses, check the results, and end; others
 * replace them. Prints "memcpy ADDRESS": the implementation that libc chose for this processor, which no symbol
 * names.
 */
#include "target.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>

#define MOST   64
#define ROUNDS 200

static _Atomic long bad;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long guarded;
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

static void memory(unsigned i)
{
	char *a = malloc(100 + i), *b = calloc(1, 100 + i);
	memset(a, (int)(i & 0x7f), 100 + i);
	copy(b, a, 100 + i);
	bad += memcmp(a, b, 100 + i) != 0;
	a = realloc(a, 400 + i);
	bad += a[99 + i] != (char)(i & 0x7f);
	free(a);
	free(b);
}

static void clocks(void)
{
	struct timespec before, after;
	struct timeval tv;
	clock_gettime(CLOCK_MONOTONIC, &before);
	bad += gettimeofday(&tv, NULL) != 0 || tv.tv_sec < 1000000000;
	clock_gettime(CLOCK_MONOTONIC, &after);
	bad += after.tv_sec < before.tv_sec || (after.tv_sec == before.tv_sec && after.tv_nsec < before.tv_nsec);
	bad += sched_getcpu() < 0 || sched_getcpu() > 4096;
}

static void descriptors(unsigned i)
{
	int p[2];
	unsigned got = 0;
	if (pipe(p) != 0) {
		bad++;
		return;
	}
	bad += write(p[1], &i, sizeof(i)) != sizeof(i) || read(p[0], &got, sizeof(got)) != sizeof(got) || got != i;
	bad += close(p[0]) != 0 || close(p[1]) != 0;
}

static void *brief(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		memory(i);
		clocks();
		descriptors(i);
		errno = 77;
		pthread_mutex_lock(&mutex);
		guarded++;
		pthread_mutex_unlock(&mutex);
		bad += errno != 77;
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread[MOST];
	long n = target_number(argc, argv, 1, 4), made = 0;
	n = n < MOST ? n : MOST;
	target_stop_on_term();
	printf("memcpy %p\n", (void *)copy);
	target_ready();
	while (!target_stop) {
		for (long i = 0; i < n; i++, made++)
			if (pthread_create(&thread[i], NULL, brief, NULL) != 0)
				return 2;
		for (long i = 0; i < n; i++)
			pthread_join(thread[i], NULL);
		target_sleep_us(1000);
	}
	bad += guarded != made * ROUNDS;
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The program of bench/run_record.py: threads that call one function as fast as they can. One function is for dynprobe, the other
 * has a compiled-in tracepoint.
 *
 *	flood THREADS        then lines on standard input: bare|probed|wanted SECONDS
 *
 * Prints per line: the number of calls, and the seconds.
 */
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/tracepoint_provider.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, BATCH = 1000 };

static uint64_t (*function)(uint64_t);
static double seconds;
static pthread_barrier_t begin, end;
static uint64_t calls[MOST];

/* The first instruction has room for a jump. */
#define FUNCTION(name, body)                                                                                                     \
	__attribute__((noinline, aligned(64))) static uint64_t name(uint64_t value)                                              \
	{                                                                                                                        \
		__asm__ volatile("lea.d32 0(%%rdi),%%r9" ::: "r9");                                                              \
		body;                                                                                                            \
		return value + 1;                                                                                                \
	}

FUNCTION(bare, )
FUNCTION(wanted, lttng_ust_tracepoint(bench, wanted, value))
FUNCTION(probed, )

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *work(void *arg)
{
	uint64_t *n = arg, value = 0;
	for (;;) {
		pthread_barrier_wait(&begin);
		const double until = now() + seconds;
		for (*n = 0; now() < until; *n += BATCH)
			for (int i = 0; i < BATCH; i++)
				value = function(value);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

static void run(unsigned threads)
{
	uint64_t sum = 0;
	pthread_barrier_wait(&begin);
	const double from = now();
	pthread_barrier_wait(&end);
	const double took = now() - from;
	for (unsigned i = 0; i < threads; i++)
		sum += calls[i];
	printf("%" PRIu64 " %.3f\n", sum, took);
}

int main(int argc, char **argv)
{
	char line[64], what[16];
	const unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	if (!threads || threads > MOST)
		return 2;
	pthread_barrier_init(&begin, NULL, threads + 1);
	pthread_barrier_init(&end, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		pthread_t t;
		pthread_create(&t, NULL, work, &calls[i]);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("READY %d\n", getpid());
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%15s %lf", what, &seconds) == 2) {
		function = *what == 'b' ? bare : *what == 'p' ? probed : wanted;
		run(threads);
	}
	return 0;
}

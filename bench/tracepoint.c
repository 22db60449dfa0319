/* SPDX-License-Identifier: MIT */
/*
 * The program of bench/run_lttng.py: a bare function, ones with compiled-in tracepoints of one field and of 18 fields that a
 *session records, one with a tracepoint that no session records, and one for dynprobe. Every round runs a batch of each.
 *
 *	tracepoint [-r ROUNDS] [-b BATCH]      then one line on standard input per measurement
 *
 * Prints per measurement: the median and minimum over rounds of the ns of CPU time per call of each.
 */
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/tracepoint_provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BARE, WANTED, MANY, IDLE, PROBED, KINDS, MAX_ROUNDS = 2000 };

static int rounds = 200, batch = 10000;
static double cost[KINDS][MAX_ROUNDS];
static volatile uint64_t sink;

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
FUNCTION(many, lttng_ust_tracepoint(bench, many, value))
FUNCTION(idle, lttng_ust_tracepoint(bench, idle, value))
FUNCTION(probed, )

static double cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double run_batch(int kind)
{
	static uint64_t (*const functions[KINDS])(uint64_t) = {bare, wanted, many, idle, probed};
	uint64_t (*f)(uint64_t) = functions[kind], sum = 0;
	double from = cpu_ns();
	for (int i = 0; i < batch; i++)
		sum += f((uint64_t)i);
	double ns = cpu_ns() - from;
	sink = sum;
	return ns / batch;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void measure(void)
{
	static const char *const names[KINDS] = {"bare", "wanted", "many", "idle", "probed"};
	for (int r = 0; r < rounds; r++)
		for (int kind = 0; kind < KINDS; kind++)
			cost[kind][r] = run_batch(kind);
	for (int kind = 0; kind < KINDS; kind++) {
		qsort(cost[kind], (size_t)rounds, sizeof(double), by_value);
		printf("%s %.3f %.3f ", names[kind], cost[kind][rounds / 2], cost[kind][0]);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	char line[64];
	int option;
	while ((option = getopt(argc, argv, "r:b:")) != -1)
		*(option == 'b' ? &batch : &rounds) = atoi(optarg);
	rounds = rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("READY %d\n", getpid());
	while (fgets(line, sizeof(line), stdin))
		measure();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The cost of an event of the sink, beside a compiled-in tracepoint of the same process. Prints nanoseconds: median of rounds. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench_tp.h"
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HITS   20000
#define ROUNDS 201
#define KINDS  4

static struct dp_sink *sink;
static struct host_event one, all;
static struct dp_probe_desc off;
static double cost[KINDS][ROUNDS];

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void hit_one(uint64_t value)
{
	if (!*one.gate)
		return;
	struct dp_record *r = host_enter(sink->enter, &one.desc);
	if (!r)
		return;
	memcpy(r->payload, &value, 8);
	host_emit(sink->emit, &one.desc, r, 8);
}

static void hit_all(uint64_t value)
{
	struct dp_record *r = host_enter(sink->enter, &all.desc);
	if (!r)
		return;
	uint64_t *to = (uint64_t *)(void *)r->payload;
	for (int i = 0; i < 18; i++)
		to[i] = value;
	host_emit(sink->emit, &all.desc, r, 18 * 8);
}

static double round_of(int kind)
{
	const double start = now();
	for (uint64_t i = 0; i < HITS; i++) {
		if (kind == 0)
			lttng_ust_tracepoint(sinkbench, compiled, i);
		else if (kind == 1)
			hit_one(i);
		else if (kind == 2)
			hit_all(i);
		else
			host_enter(sink->enter, &off);
	}
	return (now() - start) / HITS;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static struct dp_agent dead;
	static struct dp_lost lost;
	static const char *const names[KINDS] = {"compiled-in, one field", "sink, one field", "sink, 18 fields",
	                                         "enter, refused"};
	sink = host_load(argc > 1 ? argv[1] : DP_TEST_SINK_SO);
	host_begin();
	host_add("one", false);
	host_field("value", DP_SINK_UINT, 8, false);
	host_add("all", false);
	for (int i = 0; i < 18; i++)
		host_field((char[]){'r', (char)('a' + i), 0}, DP_SINK_UINT, 8, true);
	const struct dp_sink_event *e = host_serve();
	host_probe(&one, &e[0], 1);
	host_probe(&all, &e[1], 2);
	off = (struct dp_probe_desc){.agent = (uint64_t)(uintptr_t)&dead, .lost = (uint64_t)(uintptr_t)&lost};
	host_prime();
	for (int i = 0; i < 5000 && !*one.gate; i++)
		usleep(1000);
	printf("wanted %u %u present %u\n", *one.gate, *all.gate, sink->flags & DP_SINK_UST_PRESENT);
	for (int r = 0; r < ROUNDS; r++)
		for (int k = 0; k < KINDS; k++)
			cost[k][r] = round_of(k);
	for (int k = 0; k < KINDS; k++) {
		qsort(cost[k], ROUNDS, sizeof(double), ascending);
		printf("%-24s median %.1f min %.1f\n", names[k], cost[k][ROUNDS / 2], cost[k][0]);
	}
	return 0;
}

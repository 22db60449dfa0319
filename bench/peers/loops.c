/* SPDX-License-Identifier: MIT */
/*
 * The timed loops. A slice is a loop of one kind in all threads at once, for a time or a number of calls; slices of the two kinds
 * take turns, so that noise hits both alike. A slice's figure is its time by the clock, times the processors that its threads
 * could use, by the calls of all threads: what tools do on other processors, or while the program is stopped, counts.
 */
#define _GNU_SOURCE
#include "bench/peers/program.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef PEERS_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/tracepoint_provider.h"
#define TRACE(value) lttng_ust_tracepoint(bench, wanted, (uint64_t)(value))
#else
#define TRACE(value) (void)(value)
#endif

#define MOST_THREADS 64
#define MOST_PAIRS   256
#define CHUNK        1024 /* calls between two looks at the clock, if they are fast */
#define CHUNK_NS     4000
#define VALUES       4096 /* the argument counts from 0 to 4095, and again: the truth of histograms and filters */

struct worker {
	pthread_t thread;
	const struct run *run;
	long chunk[2], total; /* total: calls of the second kind */
	int64_t began, ended;
	long calls; /* of the slice */
};

static struct worker workers[MOST_THREADS];
static pthread_barrier_t begin, end;
static int64_t deadline;
static volatile int sink;

static __attribute__((noinline)) int traced(int value, const char *text)
{
	__asm__ volatile("" ::: "memory");
	TRACE(value);
	return value + *text;
}

typedef int function(int, const char *);

static __attribute__((noinline)) int call_function(function *f, long from, long n)
{
	int sum = 0;
	for (long i = from; i < from + n; i++)
		sum += f((int)(i & (VALUES - 1)), "a string of thirty-one letters!");
	return sum;
}

static __attribute__((noinline)) int call_places(int places, long from, long n)
{
	unsigned sum = 0;
	for (long i = from % places; n-- > 0; i = i + 1 < places ? i + 1 : 0)
		sum += functions[i]((unsigned)i, 1);
	return (int)sum;
}

static __attribute__((noinline)) int call_getppid(long n)
{
	int sum = 0;
	while (n-- > 0)
		sum += getppid();
	return sum;
}

static int call(enum kind kind, int places, long from, long n)
{
	static function *const of_kind[KINDS] = {
	        [KIND_BARE] = bare, [KIND_WORK] = work, [KIND_WIDE_BARE] = wide_bare, [KIND_WIDE] = wide, [KIND_TRACED] = traced};
	if (kind == KIND_PLACES)
		return call_places(places, from, n);
	return kind == KIND_GETPPID ? call_getppid(n) : call_function(of_kind[kind], from, n);
}

/* Where calls are slow a chunk is one call: no call is begun after the slice's time. */
static void slice(struct worker *w, int turn)
{
	const struct run *run = w->run;
	const enum kind kind = run->kind[turn];
	const long most = turn ? run->calls : __LONG_MAX__; /* only what is probed may fill a tool's buffers */
	int64_t t = w->began = now_ns();

	w->calls = 0;
	while (kind != KIND_NONE && t < deadline && w->calls < most) {
		const long n = w->chunk[turn] < most - w->calls ? w->chunk[turn] : most - w->calls;
		sink = call(kind, run->places, turn ? w->total : w->calls, n);
		w->calls += n;
		w->total += turn ? n : 0;
		const int64_t before = t;
		t = now_ns();
		if (t - before < CHUNK_NS && w->chunk[turn] < CHUNK)
			w->chunk[turn] *= 2;
		else if (t - before > 4 * CHUNK_NS && w->chunk[turn] > 1)
			w->chunk[turn] /= 2;
	}
	/* A thread that lost its processor just before the end, and others that did not, have worked until the deadline. */
	w->ended = t > deadline && run->threads > 1 && w->chunk[turn] > 8 ? deadline : t;
}

static void *work_for(void *arg)
{
	struct worker *w = arg;
	for (int i = 0; i < 2 * w->run->pairs; i++) {
		pthread_barrier_wait(&begin);
		slice(w, i & 1);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

/* Several threads keep to one processor each: woken together they would begin on one, and stay there for a part of the slice. */
static void pin(pthread_t thread, int number)
{
	cpu_set_t all, one;
	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all) != 0)
		return;
	number %= CPU_COUNT(&all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && number-- == 0)
			CPU_SET(cpu, &one);
	pthread_setaffinity_np(thread, sizeof(one), &one);
}

static double slice_ns(const struct run *run)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t from = workers[0].began, to = workers[0].ended, calls = 0;
	for (int i = 0; i < run->threads; i++) {
		from = workers[i].began < from ? workers[i].began : from;
		to = workers[i].ended > to ? workers[i].ended : to;
		calls += workers[i].calls;
	}
	return calls ? (double)(to - from) * (double)(cpus < run->threads ? cpus : run->threads) / (double)calls : 0;
}

static void run_pairs(const struct run *run, double figure[][2])
{
	for (int i = 0; i < 2 * run->pairs; i++) {
		deadline = now_ns() + run->ms * 1000000;
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
		figure[i / 2][i & 1] = slice_ns(run);
		if (i & 1 && run->rest_us)
			usleep((useconds_t)run->rest_us);
	}
}

void loops_run(const struct run *run)
{
	static double figure[MOST_PAIRS][2];
	if (run->threads < 1 || run->threads > MOST_THREADS || run->pairs < 1 || run->pairs > MOST_PAIRS) {
		printf("what?\n");
		return;
	}
	pthread_barrier_init(&begin, NULL, (unsigned)run->threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)run->threads + 1);
	for (int i = 0; i < run->threads; i++) {
		workers[i] = (struct worker){.run = run, .chunk = {1, 1}};
		if (pthread_create(&workers[i].thread, NULL, work_for, &workers[i]) != 0)
			abort();
		if (run->threads > 1)
			pin(workers[i].thread, i);
	}
	run_pairs(run, figure);
	printf("ran");
	for (int i = 0; i < run->pairs; i++)
		printf(" %.3f %.3f", figure[i][0], figure[i][1]);
	printf(" calls");
	for (int i = 0; i < run->threads; i++) {
		pthread_join(workers[i].thread, NULL);
		printf(" %ld", workers[i].total);
	}
	printf("\n");
	pthread_barrier_destroy(&begin);
	pthread_barrier_destroy(&end);
}

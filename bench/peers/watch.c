/* SPDX-License-Identifier: MIT */
/*
 * The program's look at itself while a tool attaches and detaches. One thread never rests and reads the clock: a gap in its time
 * is a pause, less the time for which it only waited for a processor, by the kernel's count. It also sees the first bytes of
 * its functions change, whatever the tool writes there: that is when probes are armed, or removed, by the same clock for all
 * tools.
 */
#define _GNU_SOURCE
#include "bench/peers/program.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define GAPS     (1 << 14)
#define OVER_NS  20000
#define SLEEPERS 7 /* a tool that stops all threads has more than one to stop */

struct gap {
	int64_t end, length, waited;
};

static struct gap gap[GAPS];
static int gaps, count;
static int64_t changed_at;
static int changed;
static volatile int over;
static pthread_t clock_reader, sleepers[SLEEPERS];
static const unsigned char *place[PLACES];
static unsigned char first[PLACES];

/* How long this thread has been runnable without a processor. */
static int64_t waited_ns(FILE *f)
{
	long long ran, waited = 0;
	rewind(f);
	fflush(f);
	return fscanf(f, "%lld %lld", &ran, &waited) == 2 ? waited : 0;
}

/* Looks at a few functions at a time, so that looking makes no gap. */
static void look_at_places(int64_t now)
{
	for (int i = 0; i < 64 && changed < count && __atomic_load_n(place[changed], __ATOMIC_RELAXED) != first[changed]; i++)
		if (++changed == count)
			changed_at = now;
}

static void *read_the_clock(void *arg)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "r");
	if (!f)
		abort();
	int64_t waited = waited_ns(f), last = now_ns();
	while (!over) {
		const int64_t now = now_ns(), before = last;
		look_at_places(now);
		last = now;
		if (now - before <= OVER_NS || gaps == GAPS)
			continue;
		const int64_t had_waited = waited;
		waited = waited_ns(f);
		gap[gaps++] = (struct gap){now, now - before, waited - had_waited};
		last = now_ns();
	}
	fclose(f);
	return arg;
}

static void *rest(void *arg)
{
	while (!over)
		usleep(20000);
	return arg;
}

void watch_begin(int places)
{
	count = places ? places : 1;
	for (int i = 0; i < count; i++) {
		place[i] = places ? (const unsigned char *)functions[i] : (const unsigned char *)work;
		first[i] = *place[i];
	}
	gaps = over = changed = 0;
	changed_at = 0;
	for (int i = 0; i < SLEEPERS; i++)
		pthread_create(&sleepers[i], NULL, rest, NULL);
	pthread_create(&clock_reader, NULL, read_the_clock, NULL);
	printf("watching %p %p\n", (const void *)place[0], (const void *)place[count - 1]);
}

void watch_end(void)
{
	over = 1;
	pthread_join(clock_reader, NULL);
	for (int i = 0; i < SLEEPERS; i++)
		pthread_join(sleepers[i], NULL);
	printf("changed %d at %lld gaps", changed, (long long)changed_at);
	for (int i = 0; i < gaps; i++)
		printf(" %lld %lld %lld", (long long)gap[i].end, (long long)gap[i].length, (long long)gap[i].waited);
	printf("\n");
}

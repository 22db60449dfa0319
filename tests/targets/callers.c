/* SPDX-License-Identifier: MIT */
/*
 * work(), called by two functions a known number of times: "callers N", or "callers loop" until SIGTERM. Prints for all calls and
 * for each caller their number and the sum of the sizes.
 */
#include "target.h"

static volatile long sink;
static long hits[2], sums[2];

TARGET_PROBED static long work(long size, long weight)
{
	return size * weight;
}

static void note(int who, long size)
{
	hits[who]++;
	sums[who] += size;
}

TARGET_PROBED static void first(long i)
{
	note(0, i % 4);
	sink += work(i % 4, i % 2);
}

TARGET_PROBED static void second(long i)
{
	note(1, 100);
	note(1, 200 + i % 4);
	sink += work(100, i % 2);
	sink -= work(200 + i % 4, i % 2);
}

static void round_of(long n)
{
	for (long i = 0; i < n; i++) {
		first(i);
		if (i % 2)
			second(i);
	}
}

int main(int argc, char **argv)
{
	const bool endless = argc > 1 && !strcmp(argv[1], "loop");
	target_stop_on_term();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (endless)
		printf("READY %d\n", getpid());
	do {
		round_of(endless ? 100 : argc > 1 ? atol(argv[1]) : 100);
		if (endless)
			usleep(1000); /* as a server, which is not busy */
	} while (endless && !target_stop);
	printf("work %ld %ld\nfirst %ld %ld\nsecond %ld %ld\nRESULT OK\n", hits[0] + hits[1], sums[0] + sums[1], hits[0], sums[0],
	       hits[1], sums[1]);
	return 0;
}

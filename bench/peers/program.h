/* SPDX-License-Identifier: MIT */
/* The parts of the program that `make bench-peers` probes with every tool: its functions, its timed loops, its look at itself. */
#ifndef DP_BENCH_PEERS_PROGRAM_H
#define DP_BENCH_PEERS_PROGRAM_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define PLACES 20000

/* Equal functions; tools probe all but the two bare ones. work begins with a push, wide with an instruction of seven bytes. */
int bare(int value, const char *text);
int work(int value, const char *text);
int wide_bare(int value, const char *text);
int wide(int value, const char *text);

/* tests/targets/thousands_functions.S: f10000 to f29999, in a build of its own: tools read all symbols of a program. */
extern unsigned (*const functions[PLACES])(unsigned, unsigned) __attribute__((weak));

/* A kind is what a loop calls; `first` is how many of the places it calls in turn. */
enum kind { KIND_NONE, KIND_BARE, KIND_WORK, KIND_WIDE_BARE, KIND_WIDE, KIND_PLACES, KIND_GETPPID, KIND_TRACED, KINDS };

/* One `run`: slices of two kinds in turn, each for so many milliseconds or calls of a thread. */
struct run {
	enum kind kind[2];
	int threads, pairs, places;
	long calls, ms, rest_us;
};

/* Prints "ran", the nanoseconds of a call in each slice, "calls", and how often each thread called the second kind. */
void loops_run(const struct run *run);

/* Reads the clock without rest until watch_end(), which prints how many functions' first bytes changed, when the last did, and
 * the gaps. */
void watch_begin(int places);
void watch_end(void);

static inline int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif

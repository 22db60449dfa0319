/* SPDX-License-Identifier: MIT */
/*
 * Shared by all targets. A target prints "READY PID" when it can be attached to, works until its own end or SIGTERM, and then
 * prints one line starting with "RESULT" that is the same in every correct run, probed or not. A wrong result anywhere makes it
 * print "RESULT BAD ..." and exit with 1.
 */
#ifndef DP_TESTS_TARGET_H
#define DP_TESTS_TARGET_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define TARGET_PROBED __attribute__((noinline, used, optnone))
#else
#define TARGET_PROBED __attribute__((noipa, used))
#endif

static volatile sig_atomic_t target_stop;

static inline void target_on_term(int sig)
{
	(void)sig;
	target_stop = 1;
}

static inline void target_stop_on_term(void)
{
	struct sigaction action = {.sa_handler = target_on_term, .sa_flags = SA_RESTART};
	sigfillset(&action.sa_mask); /* other handlers must not jump out of this one before it has done its work */
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

static inline void target_ready(void)
{
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
}

static inline void target_sleep_us(long us)
{
	struct timespec ts = {us / 1000000, us % 1000000 * 1000};
	while (nanosleep(&ts, &ts) != 0 && errno == EINTR && !target_stop)
		;
}

static inline uint64_t target_now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline uint64_t target_now_ms(void)
{
	return target_now_ns() / 1000000;
}

/* The result that foo() must return, computed without a probed function. */
static inline unsigned target_expected(unsigned a, const char *s)
{
	while (*s)
		a = a * 31 + (unsigned char)*s++;
	return a;
}

static inline long target_number(int argc, char **argv, int i, long otherwise)
{
	return argc > i ? strtol(argv[i], NULL, 0) : otherwise;
}

#endif

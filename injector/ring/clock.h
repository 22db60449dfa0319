/* SPDX-License-Identifier: MIT */
/*
 * Converts the time stamp counter to CLOCK_MONOTONIC. The agent writes raw counts; the tool compares the two clocks now and then,
 * and converts by line segments that meet at their ends, so that converted times never go back.
 */
#ifndef DP_INJECTOR_RING_CLOCK_H
#define DP_INJECTOR_RING_CLOCK_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct dp_clock;
struct dp_clock_pair {
	uint64_t tsc, ns;
};
/* Reads both clocks at one moment. */
struct dp_clock_pair dp_clock_read(void);

/* Reads both clocks once. Call it early: the longer before dp_clock_create(), the better the first estimate of the frequency. */
void dp_clock_prime(void);
/* Estimates the counter's frequency from the time since dp_clock_prime(), or from a fifth of a millisecond. */
struct dp_error *dp_clock_create(struct dp_clock **ret) DP_MUST_CHECK;
/* Accepts NULL. */
struct dp_clock *dp_clock_destroy(struct dp_clock *clock);
/* Call it often: it compares the clocks when due, after milliseconds at first, then once a second. */
void dp_clock_update(struct dp_clock *clock);
/* Monotonic in tsc; later updates never change the result for a count before the last update. */
uint64_t dp_clock_ns(const struct dp_clock *clock, uint64_t tsc);
/* The part of the conversion that holds for counts in [tsc, tsc + span). Later updates do not change it for counts before them.
 */
struct dp_clock_line {
	uint64_t tsc, span, ns, slope;
};
#define DP_CLOCK_OPEN (UINT64_C(1) << 63) /* the span of the last line: counts before it differ by more, modulo 2^64 */
/* The line for `tsc`. False if it is older than all lines: use dp_clock_ns(). */
bool dp_clock_line(const struct dp_clock *clock, uint64_t tsc, struct dp_clock_line *ret);
static inline bool dp_clock_line_has(const struct dp_clock_line *l, uint64_t tsc)
{
	return tsc - l->tsc < l->span;
}
static inline uint64_t dp_clock_line_ns(const struct dp_clock_line *l, uint64_t tsc)
{
	return l->ns + (uint64_t)(((unsigned __int128)(tsc - l->tsc) * l->slope) >> 32);
}
/* The counter's ticks in `ns` nanoseconds, roughly. */
uint64_t dp_clock_ticks(const struct dp_clock *clock, uint64_t ns);

/* The same from given readings of the clocks: for tests, and of other times. */
struct dp_error *dp_clock_create_at(struct dp_clock_pair first, struct dp_clock_pair second, struct dp_clock **ret) DP_MUST_CHECK;
void dp_clock_update_at(struct dp_clock *clock, struct dp_clock_pair now);

static inline uint64_t dp_clock_tsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("lfence\n\trdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (uint64_t)hi << 32 | lo;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * From the time stamp counter to CLOCK_MONOTONIC. The agent writes raw counts; the tool compares the two clocks every now
 * and then and converts between them by straight pieces that meet at their ends, so that converted times never jump back.
 */
#ifndef DP_INJECTOR_CLOCK_H
#define DP_INJECTOR_CLOCK_H

#include "base/error.h"

#include <stdint.h>

struct dp_clock;

/* Reads both clocks once, early: the longer ago that is when a clock is made, the better its first guess at the frequency. */
void dp_clock_prime(void);
/* Compares the clocks since dp_clock_prime(), or for a fifth of a millisecond, for a first guess at the counter's frequency. */
struct dp_error *dp_clock_create(struct dp_clock **ret) DP_MUST_CHECK;
/* Accepts NULL. */
struct dp_clock *dp_clock_destroy(struct dp_clock *clock);
/* Call it often: it compares the clocks anew when that is due, after milliseconds at first, then once a second. */
void dp_clock_update(struct dp_clock *clock);
/* Never falls as tsc rises, and later updates never change what it says about a count before the last one. */
uint64_t dp_clock_ns(const struct dp_clock *clock, uint64_t tsc);
/* Ticks of the counter in so many ns, roughly. */
uint64_t dp_clock_ticks(const struct dp_clock *clock, uint64_t ns);

/* For tests: the same, with given readings instead of those of the machine. */
struct dp_clock_pair {
	uint64_t tsc, ns;
};
struct dp_error *dp_clock_create_at(struct dp_clock_pair first, struct dp_clock_pair second, struct dp_clock **ret) DP_MUST_CHECK;
void dp_clock_update_at(struct dp_clock *clock, struct dp_clock_pair now);

static inline uint64_t dp_clock_tsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("lfence\n\trdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (uint64_t)hi << 32 | lo;
}

#endif

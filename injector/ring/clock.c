/* SPDX-License-Identifier: MIT */
/*
 * A knot is a point of the conversion curve; after the last knot the curve continues with `slope`. A new comparison of the clocks
 * adds a knot on the curve (so nothing converted before changes), and sets the slope after it so that the curve meets the clock
 * one period later. Only if the clock is far ahead (the machine slept) does the curve jump, forward.
 */
#include "injector/ring/clock.h"

#include <stdlib.h>
#include <time.h>

#define KNOTS        64u
#define FIRST_NS     200000u
#define MIN_PERIOD   UINT64_C(2000000)
#define MAX_PERIOD   UINT64_C(1000000000)
#define FAR_AHEAD_NS 1000000
#define TRIES        8

struct knot {
	struct dp_clock_pair at;
	uint64_t slope; /* to the next knot: ns per tick, 32 bits after the point */
};

struct dp_clock {
	struct knot knot[KNOTS]; /* a ring: the last KNOTS */
	uint64_t nknots;
	struct dp_clock_pair ref, prev; /* readings that frequencies are computed from */
	uint64_t period;                /* ns until the next comparison */
};

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The try with the least time between the two counts around the clock's reading. */
struct dp_clock_pair dp_clock_read(void)
{
	struct dp_clock_pair best = {0, 0};
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = dp_clock_tsc(), ns = monotonic_ns(), after = dp_clock_tsc();

		if (after - before < width) {
			width = after - before;
			best = (struct dp_clock_pair){before + width / 2, ns};
		}
	}
	return best;
}

static uint64_t slope_between(struct dp_clock_pair a, struct dp_clock_pair b)
{
	if (b.tsc <= a.tsc || b.ns <= a.ns)
		return 0;
	return (uint64_t)(((unsigned __int128)(b.ns - a.ns) << 32) / (b.tsc - a.tsc));
}

static const struct knot *knot_at(const struct dp_clock *c, uint64_t i)
{
	return &c->knot[i % KNOTS];
}

static void add_knot(struct dp_clock *c, struct dp_clock_pair at, uint64_t slope)
{
	c->knot[c->nknots++ % KNOTS] = (struct knot){at, slope};
}

struct dp_error *dp_clock_create_at(struct dp_clock_pair first, struct dp_clock_pair second, struct dp_clock **ret)
{
	uint64_t slope = slope_between(first, second);
	struct dp_clock *c;

	if (!slope)
		return dp_error(DP_TAG_INTERNAL, "the time stamp counter does not advance");
	c = calloc(1, sizeof(*c));
	if (!c)
		return dp_error_nomem();
	c->ref = c->prev = first;
	c->period = MIN_PERIOD;
	add_knot(c, first, slope);
	*ret = c;
	return NULL;
}

static struct dp_clock_pair primed;

void dp_clock_prime(void)
{
	if (!primed.ns)
		primed = dp_clock_read();
}

struct dp_error *dp_clock_create(struct dp_clock **ret)
{
	struct dp_clock_pair first = primed.ns ? primed : dp_clock_read();

	while (monotonic_ns() - first.ns < FIRST_NS)
		;
	return dp_clock_create_at(first, dp_clock_read(), ret);
}

struct dp_clock *dp_clock_destroy(struct dp_clock *clock)
{
	free(clock);
	return NULL;
}

/* The slope that leads from at_ns back to the clock within a period, between half and twice the true one. */
static uint64_t bend(const struct dp_clock *c, struct dp_clock_pair now, uint64_t at_ns, uint64_t true_slope)
{
	__int128 off = (__int128)now.ns - at_ns, slope;

	slope = (__int128)true_slope + (__int128)true_slope * off / (__int128)c->period;
	if (slope < true_slope / 2)
		return true_slope / 2;
	return slope > (__int128)true_slope * 2 ? true_slope * 2 : (uint64_t)slope;
}

void dp_clock_update_at(struct dp_clock *c, struct dp_clock_pair now)
{
	const struct knot *last = knot_at(c, c->nknots - 1);
	uint64_t slope = slope_between(c->ref, now), ns;

	if (now.tsc <= last->at.tsc || !slope)
		return;
	ns = dp_clock_ns(c, now.tsc);
	if (now.ns > ns && now.ns - ns > FAR_AHEAD_NS) {
		ns = now.ns;
		slope = last->slope;
		c->ref = c->prev = now;
	}
	if (c->period < MAX_PERIOD)
		c->period = c->period * 8 < MAX_PERIOD ? c->period * 8 : MAX_PERIOD;
	add_knot(c, (struct dp_clock_pair){now.tsc, ns}, bend(c, now, ns, slope));
	if (now.ns - c->ref.ns > 4 * MAX_PERIOD)
		c->ref = c->prev;
	c->prev = now;
}

void dp_clock_update(struct dp_clock *c)
{
	if (monotonic_ns() - c->prev.ns >= c->period)
		dp_clock_update_at(c, dp_clock_read());
}

/* The last knot before the count, or the first there is. */
static uint64_t knot_before(const struct dp_clock *c, uint64_t tsc)
{
	uint64_t first = c->nknots > KNOTS ? c->nknots - KNOTS : 0, i = c->nknots - 1;

	while (i > first && knot_at(c, i)->at.tsc > tsc)
		i--;
	return i;
}

bool dp_clock_line(const struct dp_clock *c, uint64_t tsc, struct dp_clock_line *ret)
{
	const uint64_t i = knot_before(c, tsc);
	const struct knot *knot = knot_at(c, i);

	*ret = (struct dp_clock_line){knot->at.tsc, DP_CLOCK_OPEN, knot->at.ns, knot->slope};
	if (i + 1 < c->nknots)
		ret->span = knot_at(c, i + 1)->at.tsc - knot->at.tsc;
	return tsc >= knot->at.tsc;
}

uint64_t dp_clock_ns(const struct dp_clock *c, uint64_t tsc)
{
	const struct knot *knot = knot_at(c, knot_before(c, tsc));
	__int128 ns;

	ns = knot->at.ns + ((((__int128)tsc - knot->at.tsc) * (__int128)knot->slope) >> 32);
	return ns < 0 ? 0 : (uint64_t)ns;
}

uint64_t dp_clock_ticks(const struct dp_clock *c, uint64_t ns)
{
	return (uint64_t)((((unsigned __int128)ns) << 32) / knot_at(c, c->nknots - 1)->slope);
}

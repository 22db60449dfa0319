/* SPDX-License-Identifier: MIT */
#include "injector/ring/clock.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A machine whose counter runs at `ghz` and whose clock started at `ns0`. */
static struct dp_clock_pair at(uint64_t tsc, double ghz, uint64_t ns0)
{
	return (struct dp_clock_pair){tsc, ns0 + (uint64_t)((double)tsc / ghz)};
}

static struct dp_clock *create(struct dp_clock_pair a, struct dp_clock_pair b)
{
	struct dp_clock *c = NULL;

	cr_assert_null(dp_clock_create_at(a, b, &c));
	return c;
}

Test(clock, agrees_with_the_real_clock)
{
	struct dp_clock *c = NULL;

	cr_assert_null(dp_clock_create(&c));
	for (int i = 0; i < 200; i++) {
		uint64_t before = now_ns(), tsc = dp_clock_tsc(), after = now_ns(), ns;

		dp_clock_update(c);
		ns = dp_clock_ns(c, tsc);
		/* Wrong frequencies and offsets are off by far more; preempted readings only widen the bracket. */
		cr_assert_gt(ns + 1000000, before);
		cr_assert_lt(ns, after + 1000000);
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	dp_clock_destroy(c);
}

/* The first guess is off by 2 per cent, as after a preempted reading: the error shrinks, and time never goes back. */
Test(clock, converges_without_falling)
{
	const double ghz = 2.5;
	struct dp_clock_pair first = at(1000000000, ghz, 5000000000), second = at(1000500000, ghz, 5000000000);
	struct dp_clock *c;
	uint64_t last = 0, tsc = second.tsc, step = 1000000;

	second.ns += (second.ns - first.ns) / 50;
	c = create(first, second);
	for (int i = 0; i < 20000; i++) {
		uint64_t ns = dp_clock_ns(c, tsc += step);

		cr_assert_geq(ns, last);
		last = ns;
		if (i % 50 == 0)
			dp_clock_update_at(c, at(tsc, ghz, 5000000000));
		cr_assert_geq(dp_clock_ns(c, tsc + 1), last);
	}
	int64_t off = (int64_t)(dp_clock_ns(c, tsc) - at(tsc, ghz, 5000000000).ns);
	cr_expect_lt(llabs(off), 10000, "off by %ld ns", (long)off);
	dp_clock_destroy(c);
}

Test(clock, what_was_said_stays_said)
{
	struct dp_clock *c = create(at(1000, 3.0, 0), at(700000, 3.1, 0));
	uint64_t said[50], tsc[50];

	for (uint64_t i = 0; i < 50; i++) {
		tsc[i] = 1000000 + i * 30000000;
		said[i] = dp_clock_ns(c, tsc[i]);
		dp_clock_update_at(c, at(tsc[i] + 15000000, 3.0 + 0.001 * (double)(i % 7), 0));
		for (uint64_t k = 0; k <= i; k++)
			cr_assert_eq(dp_clock_ns(c, tsc[k]), said[k]);
	}
	dp_clock_destroy(c);
}

/* A line of one count serves others as long as it has them: those before it, and after its end, it has not. */
Test(clock, a_line_says_what_the_clock_says)
{
	struct dp_clock *c = create(at(1000, 3.0, 0), at(700000, 3.1, 0));
	uint64_t counts[60], n = 0;

	for (uint64_t i = 0; i < 20; i++) {
		const uint64_t tsc = 101000000 + i * 30000000;
		counts[n++] = tsc - 1;
		counts[n++] = tsc;
		counts[n++] = i ? tsc + 777 : 5; /* one is older than all lines */
		dp_clock_update_at(c, at(tsc, 3.0 + 0.001 * (double)(i % 7), 0));
	}
	for (uint64_t i = 0; i < n; i++) {
		struct dp_clock_line line;
		uint64_t had = 0;
		cr_expect_eq(dp_clock_line(c, counts[i], &line), counts[i] >= 1000);
		for (uint64_t k = 0; k < n; k++)
			if (dp_clock_line_has(&line, counts[k])) {
				had++;
				cr_expect_eq(dp_clock_line_ns(&line, counts[k]), dp_clock_ns(c, counts[k]), "%lu by the line of %lu",
				             counts[k], counts[i]);
			}
		cr_expect_lt(had, 6);
	}
	dp_clock_destroy(c);
}

Test(clock, never_falls_under_noisy_readings)
{
	struct dp_clock *c = create(at(1000, 2.0, 0), at(400000, 2.0, 0));
	uint64_t last = 0;

	srand(7);
	for (uint64_t tsc = 8000000; tsc < UINT64_C(20000000000); tsc += 7000000) {
		struct dp_clock_pair p = at(tsc, 2.0, 0);

		for (uint64_t d = 0; d < 7000000; d += 500000) {
			uint64_t ns = dp_clock_ns(c, tsc - 7000000 + d);

			cr_assert_geq(ns, last);
			last = ns;
		}
		p.ns += (uint64_t)(rand() % 2000000);
		p.ns -= p.ns > 1000000 ? 1000000 : p.ns;
		dp_clock_update_at(c, p);
	}
	dp_clock_destroy(c);
}

Test(clock, a_machine_that_slept_jumps_forwards_only)
{
	struct dp_clock *c = create(at(1000, 2.0, 0), at(400000, 2.0, 0));
	uint64_t before = dp_clock_ns(c, 9000000);
	struct dp_clock_pair slept = at(10000000, 2.0, 3600000000000);

	dp_clock_update_at(c, slept);
	cr_expect_eq(dp_clock_ns(c, 9000000), before);
	cr_expect_eq(dp_clock_ns(c, 10000000), slept.ns);
	dp_clock_update_at(c, at(20000000, 2.0, 3600000000000));
	int64_t off = (int64_t)(dp_clock_ns(c, 30000000) - at(30000000, 2.0, 3600000000000).ns);
	cr_expect_lt(llabs(off), 1000, "off by %ld ns", (long)off);
	dp_clock_destroy(c);
}

Test(clock, years_of_uptime_do_not_overflow)
{
	const uint64_t start = UINT64_C(1) << 60, ns0 = UINT64_C(1) << 58;
	struct dp_clock *c = create((struct dp_clock_pair){start, ns0}, (struct dp_clock_pair){start + 600000, ns0 + 200000});

	for (uint64_t day = 1; day <= 3650; day++)
		dp_clock_update_at(c, (struct dp_clock_pair){start + day * 86400 * UINT64_C(3000000000),
		                                             ns0 + day * 86400 * UINT64_C(1000000000)});
	cr_expect_eq(dp_clock_ns(c, start + 3650 * 86400 * UINT64_C(3000000000)), ns0 + 3650 * 86400 * UINT64_C(1000000000));
	cr_expect_leq(dp_clock_ns(c, 0), ns0);
	dp_clock_destroy(c);
}

Test(clock, standing_counter_is_refused)
{
	struct dp_clock *c = NULL;
	struct dp_error *err = dp_clock_create_at(at(5, 1, 0), at(5, 1, 0), &c);

	cr_assert_not_null(err);
	cr_expect_null(c);
	dp_error_destroy(err);
}

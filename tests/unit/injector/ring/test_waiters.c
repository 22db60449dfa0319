/* SPDX-License-Identifier: MIT */
/* Hits that wait for room in their ring: each drain lets them try again, and a tool that leaves lets them go. */
#include "injector/ring/drain.h"
#include "tests/unit/agent/world.h"
#include "tests/unit/until.h"

#include <criterion/criterion.h>
#include <pthread.h>

#define RING    16384u
#define THREADS 3u
#define HITS    30000u

static struct dp_debug_ctx *w;
static struct dp_on_full *f;
static struct dp_drain *d;
static uint64_t seen;

static void begin(void)
{
	w = world_create(THREADS, RING, DP_ID_SELF);
	f = &w->control->on_full;
	*f = (struct dp_on_full){.wait_ticks = UINT64_C(1) << 41, .tick = UINT64_C(1) << 30, .served = 1};
	cr_assert_null(dp_drain_create(w->control, w->size, &d));
	dp_drain_serve(d, true);
}

static void end(void)
{
	dp_drain_destroy(d);
	world_destroy(w);
}

TestSuite(waiters, .init = begin, .fini = end, .timeout = 120);

static void see(const struct dp_hit *hit, void *data)
{
	(void)hit;
	(void)data;
	seen++;
}

static void *hits(void *ended)
{
	world_hits(w, HITS);
	__atomic_fetch_add((unsigned *)ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void start(pthread_t thread[THREADS], unsigned *ended)
{
	for (unsigned i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, hits, ended), 0);
}

static void join(pthread_t thread[THREADS])
{
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

Test(waiters, each_drain_lets_them_try_again)
{
	pthread_t thread[THREADS];
	unsigned ended = 0;

	start(thread, &ended);
	while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) < THREADS)
		cr_assert_null(dp_drain_run(d, false, see, NULL));
	join(thread);
	cr_assert_null(dp_drain_run(d, true, see, NULL));
	cr_expect_eq(seen, HITS * THREADS);
	cr_expect_eq(world_lost(w), 0);
	cr_expect_gt(f->hits, 0);
	cr_expect_eq(f->late, 0);
}

Test(waiters, a_tool_that_leaves_lets_all_go_and_none_waits_any_more)
{
	pthread_t thread[THREADS];
	unsigned ended = 0;

	cr_expect_not(dp_drain_awaited(d));
	start(thread, &ended);
	cr_assert(until(f->waits == THREADS));
	cr_expect(dp_drain_awaited(d));
	dp_drain_serve(d, false);
	join(thread); /* they would wait for minutes */
	cr_expect_eq(f->served, 0);
	cr_expect_eq(f->hits, THREADS);
	cr_assert_null(dp_drain_run(d, true, see, NULL));
	cr_expect_eq(f->served, 0, "a last drain does not invite them again");
	cr_expect_eq(seen + world_lost(w), HITS * THREADS);
}

Test(waiters, a_drain_comes_back_for_those_that_gave_up)
{
	f->served = 0;
	cr_assert_null(dp_drain_run(d, false, see, NULL));
	cr_expect_eq(f->served, 1);
}

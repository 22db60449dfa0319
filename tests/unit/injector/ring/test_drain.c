/* SPDX-License-Identifier: MIT */
#include "helper_lanes.h"
#include "injector/ring/clock.h"
#include "injector/ring/drain.h"
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RING 16384u

static struct dp_debug_ctx *w;
static struct dp_drain *d;
static bool by_lanes;

static void set_up(uint32_t nslots, uint64_t ring_size)
{
	w = world_create(nslots, ring_size, DP_ID_SELF);
	cr_assert_null(dp_drain_create(w->control, w->size, &d));
}

static void tear_down(void)
{
	dp_drain_destroy(d);
	world_destroy(w);
}

static struct dp_slot *slot_for(uint32_t tid)
{
	struct dp_thread t = {.key = UINT64_C(0x7f0000000000) + tid * UINT64_C(4096), .tid = tid};
	struct dp_slot *slot = dp_thread_slot(w->agent, &t);

	cr_assert_not_null(slot);
	cr_assert(dp_thread_announce(w->agent, slot, &t));
	return slot;
}

static struct dp_record *reserve(struct dp_slot *slot, uint64_t tsc, uint64_t value)
{
	struct dp_record *r = dp_ring_reserve(w->agent, slot, 24);

	if (r) {
		r->tsc = tsc;
		memcpy(r->payload, &value, 8);
	}
	return r;
}

static bool put(struct dp_slot *slot, uint64_t tsc, uint64_t value)
{
	struct dp_record *r = reserve(slot, tsc, value);

	if (r)
		dp_ring_commit(r, 24, 0);
	return r;
}

/* The delivered events. */
static struct got {
	uint64_t n, value[64], ns, tsc;
	pid_t tid[64];
	bool ns_fell, tsc_fell;
} got;

static void see(const struct dp_hit *hit, void *data)
{
	uint64_t i = got.n++ % 64;

	(void)data;
	memcpy(&got.value[i], hit->payload, 8);
	got.tid[i] = hit->tid;
	got.ns_fell |= hit->ns < got.ns;
	got.tsc_fell |= hit->tsc < got.tsc;
	got.ns = hit->ns;
	got.tsc = hit->tsc;
}

static void run(bool last)
{
	cr_assert_null(drain_by(d, by_lanes, last, see, NULL));
}

static struct dp_loss loss_of_all(void)
{
	struct dp_loss sum = {0}, one;

	for (unsigned i = 0; i < WORLD_PROBES; i++) {
		dp_drain_loss(d, i, &one);
		sum.full += one.full;
		sum.no_slot += one.no_slot;
		sum.forked += one.forked;
		sum.abandoned += one.abandoned;
		sum.damaged += one.damaged;
		sum.other += one.other;
	}
	return sum;
}

static void see_and_leave(const struct dp_hit *hit, void *data)
{
	see(hit, data);
	dp_drain_break(d);
}

Test(drain, a_consumer_that_leaves_misses_nothing)
{
	uint64_t t = dp_clock_tsc() - 100000000;

	set_up(4, RING);
	struct dp_slot *a = slot_for(100), *b = slot_for(101);
	for (uint64_t i = 0; i < 6; i++)
		put(i & 1 ? a : b, t + 10 * i, i);
	for (uint64_t n = 1; n <= 4; n++) {
		cr_assert_null(dp_drain_run(d, false, see_and_leave, NULL));
		cr_assert_eq(got.n, n, "%lu hits after %lu runs", got.n, n);
	}
	put(a, t + 70, 6);
	run(true);
	cr_assert_eq(got.n, 7);
	for (uint64_t i = 0; i < 7; i++)
		cr_expect_eq(got.value[i], i, "hit %lu is number %lu", i, got.value[i]);
	tear_down();
}

static void see_batch_and_leave(const struct dp_hits *hits, void *data)
{
	got.n += hits->n;
	got.tid[0] = hits->tid;
	*(uint64_t *)data = hits->lane;
	dp_drain_break(d);
}

Test(drain, a_consumer_that_leaves_a_batch_misses_nothing)
{
	uint64_t t = dp_clock_tsc() - 100000000, n = 0, lane = 0, before = 0;

	set_up(4, RING);
	struct dp_slot *a = slot_for(100), *b = slot_for(101);
	for (uint64_t i = 0; i < 600; i++)
		n += put(i & 1 ? a : b, t + 10 * i, i);
	for (int i = 0; got.n < n && i < 100; i++) {
		const uint64_t had = got.n;
		dp_drain_lanes(d, false, see_batch_and_leave, &lane);
		cr_assert_gt(got.n, had);
		cr_expect(lane != before || got.tid[0] == 100, "lanes are numbered apart");
		before = got.tid[0] == 100 ? lane : before;
	}
	cr_expect_eq(got.n, n);
	cr_expect_eq(a->head, a->tail);
	cr_expect_eq(b->head, b->tail);
	tear_down();
}

static void see_probe(const struct dp_hits *hits, void *data)
{
	for (size_t i = 0; i < hits->n; i++)
		((uint64_t *)data)[hits->item[i].probe]++;
}

/* The time stays that of the thread: no hit waits for another ring, and none is moved. */
Test(drain, lanes_do_not_wait_for_each_other)
{
	uint64_t seen[WORLD_PROBES] = {0};

	set_up(4, RING);
	struct dp_slot *a = slot_for(100), *b = slot_for(101);
	uint64_t t = dp_clock_tsc();
	struct dp_record *r = reserve(a, t + 1, 1);
	put(b, t + 2, 2);
	dp_drain_lanes(d, false, see_probe, seen);
	cr_expect_eq(seen[0], 1);
	dp_ring_commit(r, 24, 0);
	dp_drain_lanes(d, false, see_probe, seen);
	cr_expect_eq(seen[0], 2);
	cr_expect_eq(a->head, a->tail);
	tear_down();
}

Test(drain, merges_threads_by_time)
{
	uint64_t t = dp_clock_tsc() - 100000000;

	set_up(4, RING);
	struct dp_slot *a = slot_for(100), *b = slot_for(101), *c = slot_for(102);
	put(a, t + 10, 1);
	put(a, t + 40, 4);
	put(a, t + 60, 6);
	put(b, t + 20, 2);
	put(b, t + 50, 5);
	put(c, t + 30, 3);
	run(false);
	cr_assert_eq(got.n, 6);
	for (uint64_t i = 0; i < 6; i++)
		cr_expect_eq(got.value[i], i + 1);
	cr_expect_eq(got.tid[0], 100);
	cr_expect_eq(got.tid[1], 101);
	cr_expect_eq(got.tid[2], 102);
	cr_expect_not(got.ns_fell);
	cr_expect_eq(a->head, a->tail);
	tear_down();
}

Test(drain, hit_newer_than_the_pass_waits_for_the_next)
{
	set_up(4, RING);
	struct dp_slot *a = slot_for(100);
	uint64_t later, n = 1;

	put(a, dp_clock_tsc() - 100000000, 1);
	/* Until a pass is over before the hit's time, which may not be far ahead: this thread may lose its processor. */
	while (true) {
		later = dp_clock_tsc() + 2000000;
		put(a, later, ++n);
		run(false);
		if (dp_clock_tsc() < later)
			break;
		cr_assert_lt(n, 1000);
		while (dp_clock_tsc() < later + 1000000)
			;
	}
	cr_expect_eq(got.n, n - 1);
	cr_expect_eq(a->head, a->tail, "the ring is free nevertheless");
	while (dp_clock_tsc() < later + 1000000)
		;
	run(false);
	cr_expect_eq(got.n, n);
	tear_down();
}

/* An unfinished hit holds back newer hits of other threads, so that it arrives in order. */
Test(drain, waits_for_a_hit_that_is_being_written)
{
	set_up(4, RING);
	struct dp_slot *a = slot_for(100), *b = slot_for(101);
	run(false);
	uint64_t t = dp_clock_tsc();
	struct dp_record *r = reserve(a, t + 1, 1);

	while (dp_clock_tsc() < t + 1000000)
		;
	put(b, t + 2, 2);
	run(false);
	cr_expect_eq(got.n, 0);
	dp_ring_commit(r, 24, 0);
	run(false);
	cr_assert_eq(got.n, 2);
	cr_expect_eq(got.value[0], 1);
	cr_expect_eq(got.value[1], 2);
	tear_down();
}

Test(drain, does_not_wait_forever_for_a_hit_being_written)
{
	set_up(4, RING);
	struct dp_slot *a = slot_for(100), *b = slot_for(101);
	run(false);
	uint64_t t = dp_clock_tsc();
	struct dp_record *r = reserve(a, t + 1, 1);

	put(b, t + 2, 2);
	for (int i = 0; i < 1000 && !got.n; i++) {
		usleep(10000);
		run(false);
	}
	cr_assert_eq(got.n, 1);
	dp_ring_commit(r, 24, 0);
	run(false);
	cr_assert_eq(got.n, 2);
	cr_expect_eq(got.value[1], 1);
	cr_expect_not(got.ns_fell, "the late hit got the previous hit's time");
	tear_down();
}

/* A signal handler's hit comes after the one that it interrupted, with an older time. */
BothTest(drain, nested_hit_keeps_its_place)
{
	by_lanes = *lanes;
	uint64_t t = dp_clock_tsc() - 100000000;

	set_up(4, RING);
	struct dp_slot *a = slot_for(100);
	put(a, t + 10, 1);
	put(a, t + 5, 2);
	put(a, t + 20, 3);
	run(false);
	cr_expect_eq(got.n, 3);
	cr_expect_eq(got.value[1], 2);
	cr_expect_not(got.ns_fell);
	cr_expect(by_lanes || got.tsc_fell, "tsc is of the thread itself");
	tear_down();
}

BothTest(drain, last_pass_skips_and_counts_what_was_abandoned)
{
	by_lanes = *lanes;
	uint64_t t = dp_clock_tsc() - 100000000;

	set_up(4, RING);
	struct dp_slot *a = slot_for(100);
	put(a, t + 1, 1);
	reserve(a, t + 2, 0x0000000000000018); /* its payload looks like a header */
	put(a, t + 3, 3);
	reserve(a, t + 4, 4);
	run(false);
	cr_expect_eq(got.n, 1);
	run(true);
	cr_expect_eq(got.n, 2);
	cr_expect_eq(got.value[1], 3);
	cr_expect_eq(loss_of_all().abandoned, 2);
	cr_expect_eq(loss_of_all().damaged, 0);
	cr_expect_eq(a->head, a->tail);
	tear_down();
}

/* The thread died in the middle of a hit; the next one with its TCB makes that known. */
BothTest(drain, hit_abandoned_by_an_earlier_thread_does_not_block_the_next)
{
	by_lanes = *lanes;
	uint64_t t = dp_clock_tsc() - 100000000;
	struct dp_thread next = {.key = UINT64_C(0x7f0000000000) + 100 * 4096, .tid = 200};

	set_up(4, RING);
	struct dp_slot *a = slot_for(100);
	put(a, t + 1, 1);
	reserve(a, t + 2, 2);
	cr_assert_eq(dp_thread_slot(w->agent, &next), a);
	cr_assert(dp_thread_announce(w->agent, a, &next));
	put(a, t + 3, 3);
	reserve(a, t + 4, 4);
	run(false);
	cr_assert_eq(got.n, 2);
	cr_expect_eq(got.tid[0], 100);
	cr_expect_eq(got.tid[1], 200);
	cr_expect_eq(loss_of_all().abandoned, 1, "the new thread's own hit is unfinished");
	tear_down();
}

/* More records than one pass may copy: the passes stay in order. */
Test(drain, many_full_rings_come_in_order)
{
	enum { LANES = 96 };
	struct dp_slot *slot[LANES];
	uint64_t t = dp_clock_tsc() - (UINT64_C(1) << 32), n = 0;
	bool room = true;

	set_up(LANES, 1 << 20);
	for (uint32_t i = 0; i < LANES; i++)
		slot[i] = slot_for(100 + i);
	for (; room; n += room) {
		/* One thread also hits in bursts, so that the rings are cut at different times. */
		uint64_t i = n % 3 ? n % LANES : n / 5000 % LANES;

		room = put(slot[i], t + n, n);
	}
	run(false);
	cr_expect_eq(got.n, n, "%lu of %lu", got.n, n);
	cr_expect_gt(n, 100000);
	cr_expect_not(got.tsc_fell);
	cr_expect_not(got.ns_fell);
	tear_down();
}

/* ---- reuse of slots -------------------------------------------------------------------------- */

static bool alive_above(pid_t tid, void *data)
{
	return tid > *(pid_t *)data;
}

static uint64_t word(const struct dp_slot *slot)
{
	return *dp_slot_word((struct dp_slot *)slot);
}

BothTest(drain, reaps_after_drain_and_takes_abandoned_hits)
{
	by_lanes = *lanes;
	pid_t gone = 100;

	set_up(4, RING);
	struct dp_slot *a = slot_for(100), *b = slot_for(101);
	run(false);
	put(a, dp_clock_tsc() - 100000000, 1);
	reserve(a, dp_clock_tsc() - 100000000, 2);
	dp_drain_reap(d, alive_above, &gone);
	cr_expect_eq(word(a) >> 32, DP_SLOT_USED, "still holds records");
	run(false);
	cr_expect_eq(got.n, 1);
	cr_expect_eq(loss_of_all().abandoned, 1);
	dp_drain_reap(d, alive_above, &gone);
	cr_expect_eq(word(a) >> 32, DP_SLOT_DEAD);
	cr_expect_eq(w->control->slots_freed, 1);
	cr_expect_eq(word(b), dp_slot_pack(101, DP_SLOT_USED));
	cr_expect_eq(slot_for(300), a);
	put(a, dp_clock_tsc() - 100000000, 3);
	run(false);
	cr_expect_eq(got.tid[1], 300);
	tear_down();
}

static bool alive_at_second_look(pid_t tid, void *data)
{
	(void)tid;
	return ++*(int *)data > 1;
}

/* A new thread got the id between the two checks. */
Test(drain, thread_that_appears_during_the_reap_keeps_its_slot)
{
	int looks = 0;

	set_up(4, RING);
	struct dp_slot *a = slot_for(100);
	run(false);
	dp_drain_reap(d, alive_at_second_look, &looks);
	cr_expect_eq(word(a) >> 32, DP_SLOT_USED);
	cr_expect_eq(slot_for(100), a);
	cr_expect_eq(word(a), dp_slot_pack(100, DP_SLOT_USED));
	tear_down();
}

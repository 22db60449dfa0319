/* SPDX-License-Identifier: MIT */
/* The target can overwrite the rings: whatever it writes, the reader does not crash, hang or trust it. */
#include "helper_lanes.h"
#include "injector/ring/clock.h"
#include "injector/ring/drain.h"
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RING 16384u

static struct dp_debug_ctx *w;
static struct dp_drain *d;
static bool by_lanes;
static uint64_t hits, checksum;

static void set_up(uint32_t nslots)
{
	w = world_create(nslots, RING, DP_ID_SELF);
	cr_assert_null(dp_drain_create(w->control, w->size, &d));
}

static void tear_down(void)
{
	dp_drain_destroy(d);
	world_destroy(w);
}

static void see(const struct dp_hit *hit, void *data)
{
	(void)data;
	cr_assert_lt(hit->probe, WORLD_PROBES);
	cr_assert_leq(hit->len, DP_RECORD_MAX);
	for (size_t i = 0; i < hit->len; i++)
		checksum += hit->payload[i];
	hits++;
}

static void run(bool last)
{
	cr_assert_null(drain_by(d, by_lanes, last, see, NULL));
}

static uint64_t damaged(void)
{
	struct dp_loss loss;

	dp_drain_loss(d, 0, &loss);
	return loss.damaged;
}

static uint64_t header(uint64_t size, uint64_t probe, uint64_t flags)
{
	return size | probe << 32 | flags << 48;
}

/* A ring with one valid hit, and the place after it where the test damages a hit. */
static uint64_t *second_record(void)
{
	uint64_t *at;

	cr_assert(world_hit(w, 0, "first", 5));
	at = (uint64_t *)(void *)(w->rings + w->slots[0].head);
	cr_assert(world_hit(w, 1, "second", 6));
	return at;
}

static void expect_skipped(uint64_t first_word, const char *what)
{
	set_up(2);
	hits = 0;
	*second_record() = first_word;
	run(true);
	cr_expect_eq(hits, 1, "%s: %lu hits", what, hits);
	cr_expect_eq(damaged(), 1, "%s", what);
	cr_expect_eq(w->slots[0].tail, w->slots[0].head, "%s", what);
	cr_expect(world_hit(w, 0, "after", 5));
	run(true);
	cr_expect_eq(hits, 2, "%s: the following hit is valid", what);
	tear_down();
}

BothTest(damage, headers_that_cannot_be_are_skipped)
{
	by_lanes = *lanes;
	expect_skipped(header(20, 1, 0), "not a multiple of 8");
	expect_skipped(header(8, 1, 0), "too small");
	expect_skipped(header(0, 1, 0), "no size");
	expect_skipped(header(32, 1, 0), "beyond the head");
	expect_skipped(header(DP_RECORD_MAX + 8, 1, 0), "too large");
	expect_skipped(header(0xfffffff8, 1, 0), "huge");
	expect_skipped(header(24, WORLD_PROBES, 0), "no such probe");
	expect_skipped(header(24, 0xfffd, 0), "no such kind");
	expect_skipped(header(24, 1, 1), "unknown flags");
	expect_skipped(header(24, DP_RECORD_PAD, 0), "filler in the middle");
	expect_skipped(header(16, DP_RECORD_THREAD, 0), "thread without id");
	expect_skipped(UINT64_MAX, "all ones");
}

BothTest(damage, impossible_thread_ids_are_not_believed)
{
	by_lanes = *lanes;
	set_up(2);
	uint64_t *at = second_record();

	at[0] = header(24, DP_RECORD_THREAD, 0);
	at[2] = UINT64_MAX;
	run(true);
	cr_expect_eq(hits, 1);
	cr_expect_eq(damaged(), 1);
	tear_down();
}

static void see_tid(const struct dp_hit *hit, void *data)
{
	*(pid_t *)data = hit->tid;
}

BothTest(damage, thread_is_known_when_its_announcement_was_damaged)
{
	by_lanes = *lanes;
	pid_t tid = 0;

	set_up(2);
	cr_assert(world_hit(w, 0, "lost", 4));
	*(uint64_t *)(void *)w->rings = header(24, DP_RECORD_PAD, 0);
	run(false);
	cr_assert(world_hit(w, 0, "seen", 4));
	cr_assert_null(drain_by(d, by_lanes, true, see_tid, &tid));
	cr_expect_eq(tid, gettid());
	tear_down();
}

/* Otherwise a time far in the future would hold back everything after it. */
BothTest(damage, hits_from_the_future_are_dropped)
{
	by_lanes = *lanes;
	set_up(2);
	uint64_t *at = second_record();

	at[1] = UINT64_MAX - 5;
	run(false);
	run(true);
	cr_expect_eq(hits, 1);
	cr_expect_eq(damaged(), 1);
	tear_down();
}

/* The first tail comes from the target: from this one a header would reach into the next ring. */
BothTest(damage, tail_that_no_header_fits_behind_is_not_believed)
{
	by_lanes = *lanes;
	w = world_create(3, RING, DP_ID_SELF);
	w->slots[1].state = DP_SLOT_USED;
	w->slots[1].tail = RING - 1;
	w->slots[1].head = RING;
	cr_assert_null(dp_drain_create(w->control, w->size, &d));
	cr_assert(world_hit(w, 0, "fine", 4));
	run(false);
	run(true);
	cr_expect_eq(hits, 1);
	cr_expect_eq(damaged(), 1, "%lu", damaged());
	cr_expect_eq(w->slots[1].tail, RING);
	tear_down();
}

static void expect_recovered(uint64_t head)
{
	set_up(2);
	hits = 0;
	second_record();
	w->slots[0].head += head;
	run(false);
	cr_expect_eq(damaged(), 1);
	cr_expect_eq(w->slots[0].head % 8, 0);
	for (int i = 0; i < 2000; i++) {
		world_hit(w, 0, "good", 4);
		if (i % 100 == 0)
			run(false);
	}
	run(true);
	cr_expect_eq(hits + world_lost(w), 2000, "head %+ld: %lu hits, %lu lost", (long)head, hits, world_lost(w));
	cr_expect_eq(damaged(), 1);
	tear_down();
}

BothTest(damage, heads_that_cannot_be_start_afresh)
{
	by_lanes = *lanes;
	expect_recovered(4);
	expect_recovered(RING);
	expect_recovered((uint64_t)-512);
	expect_recovered(UINT64_C(1) << 62);
}

BothTest(damage, layout_is_remembered_from_the_start)
{
	by_lanes = *lanes;
	set_up(2);
	cr_assert(world_hit(w, 0, "", 0));
	memset(w->control, 0xff, 4096);
	run(true);
	cr_expect_eq(hits, 1);
	tear_down();
}

static void expect_refused(void (*change)(struct dp_control *c))
{
	struct dp_drain *none = NULL;
	struct dp_error *err;

	w = world_create(4, RING, DP_ID_SELF);
	change(w->control);
	err = dp_drain_create(w->control, w->size, &none);
	cr_expect_not_null(err);
	if (err)
		cr_expect_eq(err->tag, DP_TAG_INTERNAL);
	dp_error_destroy(err);
	dp_drain_destroy(none);
	world_destroy(w);
}

static void no_magic(struct dp_control *c)
{
	c->magic = 0;
}
static void other_version(struct dp_control *c)
{
	c->abi++;
}
static void odd_ring(struct dp_control *c)
{
	c->ring_size = 10000;
}
static void rings_outside(struct dp_control *c)
{
	c->rings_offset += 8;
}
static void many_slots(struct dp_control *c)
{
	c->nslots = UINT32_MAX;
}
static void slots_outside(struct dp_control *c)
{
	c->slots_offset = UINT64_MAX - 7;
}

Test(damage, layouts_that_do_not_fit_are_refused)
{
	expect_refused(no_magic);
	expect_refused(other_version);
	expect_refused(odd_ring);
	expect_refused(rings_outside);
	expect_refused(many_slots);
	expect_refused(slots_outside);
}

/* ---- random writes --------------------------------------------------------------------------- */

static uint64_t random64(unsigned *seed)
{
	return (uint64_t)rand_r(seed) << 42 ^ (uint64_t)rand_r(seed) << 21 ^ (uint64_t)rand_r(seed);
}

/* Plausible values are worse than noise. */
static uint64_t value(unsigned *seed)
{
	switch (rand_r(seed) % 6) {
	case 0:
		return random64(seed);
	case 1:
		return (uint64_t)(rand_r(seed) % (2 * RING));
	case 2:
		return header((uint64_t)(rand_r(seed) % 600) * 8, (uint64_t)(rand_r(seed) % WORLD_PROBES), 0);
	case 3:
		return header(RING - (uint64_t)(rand_r(seed) % RING), DP_RECORD_PAD, 0);
	case 4:
		return dp_clock_tsc() - (uint64_t)(rand_r(seed) % 1000000);
	default:
		return 0;
	}
}

static void scribble(unsigned *seed)
{
	uint64_t *start = (uint64_t *)(void *)w->slots;
	size_t words = (w->size - w->control->slots_offset) / 8, nslots = 8 * sizeof(struct dp_slot) / 8;
	size_t i = rand_r(seed) % 2 ? (size_t)rand_r(seed) % nslots : random64(seed) % words;

	__atomic_store_n(&start[i], value(seed), __ATOMIC_RELAXED);
}

static bool alive_by_chance(pid_t tid, void *data)
{
	cr_assert_gt(tid, 0);
	return rand_r(data) % 2;
}

BothTest(damage, random_scribbling_between_passes)
{
	by_lanes = *lanes;
	unsigned seed = 1;

	set_up(8);
	for (int i = 0; i < 30000; i++) {
		for (int k = rand_r(&seed) % 20; k >= 0; k--)
			scribble(&seed);
		run(i % 1000 == 999);
		dp_drain_reap(d, alive_by_chance, &seed);
	}
	run(true);
	cr_expect_gt(damaged(), 100);
	tear_down();
}

static volatile bool scribbling = true;

static void *scribble_all(void *arg)
{
	while (scribbling)
		scribble(arg);
	return NULL;
}

BothTest(damage, random_scribbling_during_passes)
{
	by_lanes = *lanes;
	unsigned seed = 2, other = 3;
	pthread_t thread;

	set_up(8);
	const time_t end = time(NULL) + 60; /* generous: the other thread may wait for a processor */
	pthread_create(&thread, NULL, scribble_all, &seed);
	for (int i = 0; damaged() < 2000 && time(NULL) < end; i++) {
		run(i % 1000 == 999);
		dp_drain_reap(d, alive_by_chance, &other);
	}
	scribbling = false;
	pthread_join(thread, NULL);
	run(true);
	cr_expect_gt(damaged(), 100);
	tear_down();
}

/* SPDX-License-Identifier: MIT */
/* Rings that grow on demand, from memory that all of them share. No ring writes past its room. */
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RING (1u << 20)

static struct dp_debug_ctx *w;

static void set_up(uint32_t nslots, uint64_t first, uint64_t pool)
{
	w = world_create(nslots, RING, DP_ID_SELF);
	for (uint32_t i = 0; i < nslots; i++)
		w->slots[i].room = 0;
	w->control->pool_first = first;
	w->control->pool = pool;
	w->control->pool_most = first + pool;
}

static uint64_t all_memory(void)
{
	uint64_t n = w->control->pool_first + w->control->pool;

	for (uint32_t i = 0; i < w->control->nslots; i++)
		n += w->slots[i].room;
	return n;
}

static bool nothing_behind(const struct dp_slot *slot)
{
	const uint64_t *word = (const uint64_t *)(uintptr_t)slot->base;

	for (uint64_t i = slot->room / 8; i <= slot->mask / 8; i++)
		if (word[i])
			return false;
	return true;
}

static unsigned drain(struct dp_slot *slot)
{
	unsigned n = 0;

	while (slot->tail < slot->head) {
		struct dp_record *r = (struct dp_record *)(uintptr_t)(slot->base + (slot->tail & slot->mask));
		const uint32_t size = r->size;

		cr_assert(size);
		n += r->probe < DP_RECORD_THREAD;
		memset(r, 0, r->probe == DP_RECORD_PAD ? 8 : size);
		slot->tail += size;
	}
	return n;
}

Test(room, ring_that_is_read_in_time_stays_small_where_memory_is_short)
{
	set_up(1, DP_ROOM_STEP, 0);
	for (unsigned i = 0; i < 20000; i++) {
		cr_assert_eq(world_hits(w, 10), 10);
		cr_assert_eq(drain(&w->slots[0]), 10);
	}
	cr_expect_eq(w->slots[0].room, DP_ROOM_STEP);
	cr_expect_eq(all_memory(), DP_ROOM_STEP);
	cr_expect_eq(world_lost(w), 0);
	cr_expect(nothing_behind(&w->slots[0]));
	world_destroy(w);
}

Test(room, ring_grows_before_it_is_used_a_second_time_while_there_is_plenty)
{
	set_up(1, DP_ROOM_STEP, 4 * RING);
	for (unsigned i = 0; i < 20000; i++) {
		cr_assert_eq(world_hits(w, 10), 10);
		drain(&w->slots[0]);
	}
	cr_expect_eq(w->slots[0].room, DP_ROOM_GOOD);
	world_destroy(w);
}

/* Without a reader, a ring keeps as many records as a ring of its full size, and takes no more memory. */
Test(room, ring_that_nobody_reads_takes_all_that_it_may)
{
	set_up(1, DP_ROOM_STEP, 4 * RING);
	const unsigned recorded = world_hits(w, 100000);

	cr_expect_eq(w->slots[0].room, RING);
	cr_expect_geq(recorded, (RING - 24 - 64) / 24);
	cr_expect_eq(recorded + w->lost[0].full, 100000);
	cr_expect_eq(all_memory(), DP_ROOM_STEP + 4 * RING);
	cr_expect_eq(drain(&w->slots[0]), recorded);
	world_destroy(w);
}

Test(room, without_memory_hits_are_lost_and_counted)
{
	set_up(2, 0, 0);
	cr_expect_eq(world_hits(w, 100), 0);
	cr_expect_eq(w->lost[0].full, 100);
	cr_expect_geq(w->control->starved, 100);
	cr_expect(nothing_behind(&w->slots[0]));
	w->control->pool = DP_ROOM_STEP; /* another ring gave its memory back */
	cr_expect_eq(world_hits(w, 100), 100);
	cr_expect_eq(all_memory(), DP_ROOM_STEP);
	world_destroy(w);
}

Test(room, last_of_the_memory_is_taken_in_small_steps)
{
	set_up(1, DP_ROOM_STEP, 5 * DP_ROOM_STEP);
	world_hits(w, 100000);
	cr_expect_eq(w->slots[0].room, 6 * DP_ROOM_STEP);
	cr_expect_eq(w->control->pool, 0);
	cr_expect(nothing_behind(&w->slots[0]));
	world_destroy(w);
}

/* Every size of record meets every offset before the room's end; the filler's word still fits. */
Test(room, ends_at_every_offset_with_every_size)
{
	set_up(1, DP_ROOM_STEP, 0);
	struct dp_slot *slot = &w->slots[0];

	world_hits(w, 1);
	drain(slot);
	for (uint32_t size = 16; size <= 160; size += 8) {
		for (uint32_t left = 8; left <= 176; left += 8) {
			const uint64_t next = (slot->head | slot->mask) + 1, lap = next - RING;
			uint8_t payload[160];

			slot->head = slot->tail = lap + DP_ROOM_STEP - left;
			slot->limit = 0;
			memset(payload, 0xff, sizeof(payload));
			w->desc[1].reserve = size;
			cr_assert(world_hit(w, 1, payload, size - 16));
			cr_assert_eq(slot->head, size + DP_PAD_LEAST <= left ? lap + DP_ROOM_STEP - left + size : next + size,
			             "size %u left %u", size, left);
			cr_assert(nothing_behind(slot), "size %u left %u", size, left);
			cr_assert_eq(drain(slot), 1);
		}
	}
	world_destroy(w);
}

Test(room, flight_recorder_keeps_the_newest_in_what_it_has)
{
	set_up(1, DP_ROOM_STEP, 2 * DP_ROOM_STEP);
	w->control->overwrite = 1;
	cr_expect_eq(world_hits(w, 200000), 200000);
	cr_expect_eq(w->slots[0].room, 3 * DP_ROOM_STEP);
	cr_expect(nothing_behind(&w->slots[0]));
	const unsigned kept = drain(&w->slots[0]);
	cr_expect_geq(kept, DP_ROOM_STEP / 24);
	cr_expect_eq(kept + w->lost[0].overwritten, 200000);
	world_destroy(w);
}

Test(room, flight_recorder_without_memory_loses_and_goes_on)
{
	set_up(1, 0, 0);
	w->control->overwrite = 1;
	cr_expect_eq(world_hits(w, 1000), 0);
	cr_expect_eq(w->lost[0].full, 1000);
	w->control->pool = DP_ROOM_STEP;
	cr_expect_eq(world_hits(w, 1000), 1000);
	world_destroy(w);
}

/* ---- many ------------------------------------------------------------------------------------ */

static volatile uint64_t nested;

static void on_signal(int signo)
{
	(void)signo;
	nested += world_hit(w, 1, "12345678", 8);
	nested += world_hit(w, 1, "12345678", 8);
}

static void *work(void *arg)
{
	const unsigned *n = arg;
	uint64_t recorded = 0;

	for (unsigned i = 0; i < *n; i++)
		recorded += world_hit(w, 0, &i, sizeof(i));
	return (void *)(uintptr_t)recorded;
}

/* Threads grow their rings at the same time: the sum of memory is unchanged. */
Test(room, threads_share_the_memory_exactly)
{
	static unsigned n = 50000;
	pthread_t thread[16];
	uint64_t recorded = 0, drained = 0;

	set_up(16, 16 * DP_ROOM_STEP, 100 * DP_ROOM_STEP);
	for (unsigned i = 0; i < 16; i++)
		cr_assert_not(pthread_create(&thread[i], NULL, work, &n));
	for (unsigned i = 0; i < 16; i++) {
		void *got;
		pthread_join(thread[i], &got);
		recorded += (uintptr_t)got;
	}
	cr_expect_eq(recorded + world_lost(w), 16 * (uint64_t)n);
	cr_expect_eq(all_memory(), 116 * DP_ROOM_STEP);
	for (unsigned i = 0; i < 16; i++) {
		cr_expect(nothing_behind(&w->slots[i]));
		drained += drain(&w->slots[i]);
	}
	cr_expect_eq(drained, recorded);
	world_destroy(w);
}

static volatile int storm_over;

static void *storm(void *arg)
{
	while (!storm_over) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		for (volatile int i = 0; i < 50; i++)
			;
	}
	return NULL;
}

/* A ring without room, so that it must grow again. */
static unsigned begin_anew(void)
{
	struct dp_slot *slot = &w->slots[0];
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	const unsigned drained = drain(slot);
	w->control->pool += slot->room;
	slot->head = slot->tail = (slot->tail + RING - 1) & ~(uint64_t)slot->mask;
	slot->limit = slot->room = 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return drained;
}

/* Handlers hit while their thread grows its ring, or starts its next lap. */
Test(room, signal_storm_keeps_exact_totals)
{
	pthread_t thread, self = pthread_self();
	uint64_t outer = 0, drained = 0;

	set_up(1, DP_ROOM_STEP, 3 * DP_ROOM_STEP);
	signal(SIGUSR1, on_signal);
	pthread_create(&thread, NULL, storm, &self);
	uint64_t i = 0;
	for (; i < 1000000 || nested < 1000; i++) {
		outer += world_hit(w, 0, &i, sizeof(i));
		if (i % 7 == 0)
			drained += drain(&w->slots[0]);
		if (i % 40 == 0)
			drained += begin_anew();
	}
	storm_over = 1;
	pthread_join(thread, NULL);
	signal(SIGUSR1, SIG_IGN);
	drained += drain(&w->slots[0]);
	cr_expect_eq(drained, outer + nested);
	cr_expect_eq(all_memory(), 4 * DP_ROOM_STEP);
	cr_expect(nothing_behind(&w->slots[0]));
	world_destroy(w);
}

/* SPDX-License-Identifier: MIT */
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define RING 16384u

static struct dp_slot *slot_of(struct dp_debug_ctx *w)
{
	struct dp_reservation r = world_reserve(w, 0);
	struct dp_capture capture = {.record = r.record, .slot = r.slot, .desc = &w->desc[0]};

	capture.cursor = r.record->payload;
	w->finish(&capture);
	world_drain(r.slot, NULL, NULL);
	return r.slot;
}

static bool all_zero(const struct dp_debug_ctx *w)
{
	const uint64_t *words = (const uint64_t *)(const void *)w->rings;

	for (size_t i = 0; i < w->control->nslots * w->control->ring_size / 8; i++)
		if (words[i])
			return false;
	return true;
}

Test(ring, first_record_of_a_slot_names_the_thread)
{
	struct dp_debug_ctx *w = world_create(4, RING, DP_ID_SELF);
	struct dp_record *r = (struct dp_record *)w->rings;

	cr_assert(world_hit(w, 2, "12345678", 8));
	cr_expect_eq(r->probe, DP_RECORD_THREAD);
	cr_expect_eq(r->size, 24);
	cr_expect_eq(*(uint64_t *)r->payload, (uint64_t)gettid());
	r = (struct dp_record *)(w->rings + 24);
	cr_expect_eq(r->probe, 2);
	cr_expect_eq(r->size, 24);
	cr_expect_arr_eq(r->payload, "12345678", 8);
	world_destroy(w);
}

/* Every size of record meets every offset before the ring's end. */
Test(ring, wraps_at_every_offset_with_every_size)
{
	struct dp_debug_ctx *w = world_create(1, RING, DP_ID_SELF);
	struct dp_slot *slot = slot_of(w);

	for (uint32_t size = 16; size <= 160; size += 8) {
		for (uint32_t left = 8; left <= 168; left += 8) {
			uint64_t lap_end = (slot->head | slot->mask) + 1;
			uint8_t payload[160];

			/* An empty ring whose head is `left` bytes before the end. */
			slot->head = slot->tail = lap_end - left;
			slot->limit = 0;
			memset(payload, (int)(size + left), sizeof(payload));
			w->desc[1].reserve = size;
			cr_assert(world_hit(w, 1, payload, size - 16));
			cr_assert_eq(slot->head, size <= left ? lap_end - left + size : lap_end + size, "size %u left %u", size,
			             left);
			cr_assert_leq(slot->limit, ((slot->head - 1) | slot->mask) + 1);
			cr_assert_eq(world_drain(slot, NULL, NULL), 1);
			cr_assert_eq(slot->tail, slot->head);
		}
	}
	cr_assert(all_zero(w));
	world_destroy(w);
}

Test(ring, full_ring_loses_and_counts_and_never_overwrites)
{
	struct dp_debug_ctx *w = world_create(1, RING, DP_ID_SELF);
	unsigned recorded = 0, lost = 0;

	w->desc[0].reserve = 48;
	for (unsigned i = 0; i < 1000; i++)
		world_hit(w, 0, &i, sizeof(i)) ? recorded++ : lost++;
	cr_expect_eq(w->lost[0].full, lost);
	/* 24 bytes each; a reservation of 48 must fit */
	cr_expect_geq(recorded, (RING - 24 - 48) / 24);
	cr_expect_eq(world_drain(&w->slots[0], NULL, NULL), recorded);
	cr_expect(all_zero(w));
	cr_expect(world_hit(w, 0, "", 0), "a drained ring accepts hits again");
	cr_expect_leq(w->slots[0].head - w->slots[0].tail, RING);
	world_destroy(w);
}

Test(ring, limit_is_never_too_high_whatever_the_tail)
{
	struct dp_debug_ctx *w = world_create(1, RING, DP_ID_SELF);
	struct dp_slot *slot = slot_of(w);

	srand(1);
	for (unsigned i = 0; i < 200000; i++) {
		w->desc[0].reserve = 16 + 8 * (uint32_t)(rand() % 100);
		uint8_t payload[DP_RECORD_MAX] = {0};
		world_hit(w, 0, payload, (size_t)rand() % (w->desc[0].reserve - 15));
		cr_assert_leq(slot->head, slot->tail + RING);
		cr_assert_leq(slot->limit, slot->tail + RING);
		if (rand() % 50 == 0)
			world_drain(slot, NULL, NULL);
	}
	world_drain(slot, NULL, NULL);
	cr_assert(all_zero(w));
	world_destroy(w);
}

/* ---- signals --------------------------------------------------------------------------------- */

static struct dp_debug_ctx *storm_world;
static volatile uint64_t nested_recorded, nested_lost;

static void on_signal(int signo)
{
	uint64_t mark = 0x1111111111111111;

	(void)signo;
	for (int i = 0; i < 3; i++) {
		if (world_hit(storm_world, 1, &mark, sizeof(mark)))
			nested_recorded++;
		else
			nested_lost++;
	}
}

struct seen {
	uint64_t outer, nested, next_seq;
	bool in_order;
};

static void see(const struct dp_record *r, void *data)
{
	struct seen *s = data;
	uint64_t value;

	if (r->probe > 1) /* padding has no payload, and the ring may end after it */
		return;
	value = *(const uint64_t *)r->payload;
	if (r->probe == 1) {
		s->nested++;
		s->in_order &= value == 0x1111111111111111;
	} else {
		s->outer++;
		s->in_order &= value > s->next_seq;
		s->next_seq = value;
	}
}

/* A handler's hits arrive at any instruction of a hit: reserve, wrap, limit, trim. Every record is whole, every loss counted. */
Test(ring, signal_storm_keeps_exact_totals)
{
	struct seen s = {.in_order = true};
	uint64_t outer_recorded = 0, outer_lost = 0;
	pthread_t thread, self = pthread_self();

	storm_world = world_create(1, RING, DP_ID_SELF);
	storm_world->desc[0].reserve = 200;
	signal(SIGUSR1, on_signal);
	pthread_create(&thread, NULL, world_storm, &self);
	for (uint64_t i = 1; i <= 2000000 || nested_recorded < 1000; i++) {
		if (world_hit(storm_world, 0, &i, sizeof(i)))
			outer_recorded++;
		else
			outer_lost++;
		if (i % 64 == 0)
			world_drain(&storm_world->slots[0], see, &s);
	}
	world_storm_over = 1;
	pthread_join(thread, NULL);
	signal(SIGUSR1, SIG_IGN);
	world_drain(&storm_world->slots[0], see, &s);
	cr_expect_gt(nested_recorded, 100);
	cr_expect_eq(s.outer, outer_recorded);
	cr_expect_eq(s.nested, nested_recorded);
	cr_expect_eq(world_lost(storm_world), outer_lost + nested_lost);
	cr_expect(s.in_order);
	cr_expect_eq(storm_world->slots[0].head, storm_world->slots[0].tail);
	cr_expect(all_zero(storm_world));
	world_destroy(storm_world);
}

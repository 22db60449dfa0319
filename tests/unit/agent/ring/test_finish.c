/* SPDX-License-Identifier: MIT */
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <string.h>

#define RING 16384u

static struct dp_capture begin(struct dp_debug_ctx *w, unsigned probe, uint32_t reserve)
{
	struct dp_reservation r;
	struct dp_capture capture;

	w->desc[probe].reserve = reserve;
	r = world_reserve(w, probe);
	cr_assert_not_null(r.record);
	capture = (struct dp_capture){.record = r.record, .slot = r.slot, .desc = &w->desc[probe], .cursor = r.record->payload};
	return capture;
}

Test(finish, gives_back_what_was_not_needed)
{
	struct dp_debug_ctx *w = world_create(1, RING, DP_ID_SELF);

	for (uint32_t used = 0; used <= 184; used++) {
		struct dp_capture c = begin(w, 0, 200);
		uint64_t start = c.slot->head - 200;
		uint32_t size = (16 + used + 7) / 8 * 8;

		memset(c.cursor, 1, used);
		c.cursor += used;
		dp_agent_finish(&c);
		cr_assert_eq(c.record->size, size);
		cr_assert_eq(c.record->probe, 0);
		cr_assert_eq(c.record->flags, 0);
		cr_assert_eq(c.slot->head, start + size);
		world_drain(c.slot, NULL, NULL);
	}
	world_destroy(w);
}

Test(finish, keeps_the_size_when_a_nested_record_follows)
{
	struct dp_debug_ctx *w = world_create(1, RING, DP_ID_SELF);
	struct dp_capture outer = begin(w, 0, 200), inner = begin(w, 1, 64);
	uint64_t head;

	inner.cursor += 8;
	dp_agent_finish(&inner);
	cr_expect_eq(inner.record->size, 24, "the inner record is the last, so it is trimmed");
	head = outer.slot->head;
	outer.cursor += 8;
	dp_agent_finish(&outer);
	cr_expect_eq(outer.record->size, 200);
	cr_expect_eq(outer.slot->head, head);
	cr_expect_eq((uint8_t *)inner.record - (uint8_t *)outer.record, 200);
	cr_expect_eq(world_drain(outer.slot, NULL, NULL), 2);
	world_destroy(w);
}

Test(finish, is_invisible_until_committed)
{
	struct dp_debug_ctx *w = world_create(1, RING, DP_ID_SELF);
	struct dp_capture c = begin(w, 0, 64);

	c.record->tsc = 1;
	memset(c.cursor, 0xff, 48);
	cr_expect_eq(world_drain(c.slot, NULL, NULL), 0);
	c.cursor += 48;
	dp_agent_finish(&c);
	cr_expect_eq(world_drain(c.slot, NULL, NULL), 1);
	world_destroy(w);
}

/* A record that ends at the ring's end: its end and the ring's start have the same offset. */
Test(finish, trims_at_the_end_of_the_ring)
{
	struct dp_debug_ctx *w = world_create(1, RING, DP_ID_SELF);
	struct dp_capture c = begin(w, 0, 64);
	uint64_t end;

	dp_agent_finish(&c);
	world_drain(c.slot, NULL, NULL);
	end = (c.slot->head | c.slot->mask) + 1;
	c.slot->head = c.slot->tail = end - 200;
	c.slot->limit = 0;
	c = begin(w, 0, 200);
	cr_assert_eq(c.slot->head, end);
	dp_agent_finish(&c);
	cr_expect_eq(c.slot->head, end - 200 + 16);
	c = begin(w, 0, 184);
	cr_expect_eq(c.slot->head, end);
	c.cursor += 168;
	dp_agent_finish(&c);
	cr_expect_eq(c.slot->head, end);
	cr_expect_eq(world_drain(c.slot, NULL, NULL), 2);
	world_destroy(w);
}

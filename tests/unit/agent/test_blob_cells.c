/* SPDX-License-Identifier: MIT */
/* The stack that keys of aggregations need: the program's, and the unwinder's own. */
#include "agent/unwind/apart.h"
#include "agent/unwind/unwind.h"
#include "tests/unit/agent/blob.h"

TestSuite(blob_cells, .init = blob_setup);

/* One block of cells, shared by all, with keys by backtrace. */
static void aggregate_by_backtrace(struct dp_debug_ctx *w)
{
	static _Alignas(64) uint64_t memory[4096];

	memset(memory, 0, sizeof(memory));
	w->control->answers =
	        (struct dp_aggs){.head = (uintptr_t)memory, .size = 16384, .keys = 1024, .key_size = 512, .nkeys = 16};
	w->desc[0].stack_words = 33;
	w->desc[0].reserve = 0;
}

Test(blob_cells, aggregation_by_backtrace_on_the_unwinders_stack_uses_less_than_the_thunks)
{
	struct dp_debug_ctx *w = world_create(1, 16384, DP_ID_SELF);
	static uint8_t room[DP_APART_TOP + 64] __attribute__((aligned(64)));
	struct dp_unwind tables = {.magic = DP_UNWIND_MAGIC, .size = sizeof(tables)};
	uint64_t cells[2] = {0};

	aggregate_by_backtrace(w);
	w->agent->unwind = (uintptr_t)&tables;
	acquire(w, false, 0); /* the slot is this thread's */
	w->slots[0].cache = (uintptr_t)room;
	memset(room, 0x5a, sizeof(room));
	for (uint64_t taken = 0; taken < 2; taken++) {
		w->slots[0].apart = taken;
		call_helper(DP_SYM_STACKED_APART, (struct dp_capture){.record = (void *)cells, .desc = &w->desc[0]});
		cr_assert_neq(cells[0], 0);
		cr_expect_eq(cells[1], 1, "the shared block");
		cr_expect_lt(stack_used(), 512, "%zu bytes", stack_used());
		cr_expect_eq(w->slots[0].apart, taken);
		cr_expect_eq(*(const uint64_t *)(uintptr_t)(cells[0] - 33 * 8), 1);
		cr_expect_eq(*(const uint64_t *)(uintptr_t)(cells[0] - 32 * 8), (uintptr_t)call_helper, "in both cases");
	}
	cr_expect_neq(room[DP_APART_TOP - 8], 0x5a, "it did not use its own stack");
	cr_expect_eq(room[DP_APART_CACHE + 512], 0x5a, "it used %d bytes of its own stack", DP_APART_STACK - 512);
	cr_expect_eq(room[DP_APART_TOP], 0x5a, "it wrote above its stack");
	cr_expect_eq(world_lost(w), 0);
	world_destroy(w);
}

/* Probe 0 counts by the longest strings, four of them; what a stub has behind its descriptor is in place of those of others. */
static void aggregate_by_strings(struct dp_debug_ctx *w)
{
	struct dp_op *op = (struct dp_op *)(void *)&w->desc[1];

	aggregate_by_backtrace(w);
	w->desc[0].stack_words = 1 + 4 + DP_AGG_TEXT_WORDS;
	w->desc[0].reserve = sizeof(w->desc[0]);
	memset(w->desc + 1, 0, 2 * sizeof(w->desc[0]));
	for (unsigned i = 0; i < 4; i++)
		op[i] = (struct dp_op){.size = i == 3 ? 73 : 65, .field = (uint16_t)(i + 1)};
}

static const char long_text[] = "a string that is longer than what a key may hold of it, which is 69 characters and dots at most";
#define STRINGS                                                                                                                  \
	{                                                                                                                        \
		4, (uintptr_t)long_text, (uintptr_t)long_text, (uintptr_t)long_text, (uintptr_t)long_text                        \
	}

Test(blob_cells, aggregation_by_strings_uses_less_than_800_bytes)
{
	struct dp_debug_ctx *w = world_create(1, 16384, DP_ID_SELF);
	static uint64_t given[] = STRINGS;
	struct machine in = {.flags = 0x202}, out;

	aggregate_by_strings(w);
	in.gpr[0] = (uintptr_t)&w->desc[0];
	in.gpr[2] = (uintptr_t)given;
	call_with(&in, &out, symbol(DP_SYM_KEYED), 8);
	cr_assert_neq(out.gpr[6], 0);
	cr_expect_eq(((const uint64_t *)(uintptr_t)out.gpr[6])[-(int)w->desc[0].stack_words], 4 + 8 + 8 + 8 + 9);
	cr_expect_lt(stack_used(), 800, "%zu bytes", stack_used());
	world_destroy(w);
}

/* On goroutines. While that stack is taken, there is no room for strings. */
Test(blob_cells, aggregation_by_strings_on_the_unwinders_stack)
{
	struct dp_debug_ctx *w = world_create(1, 16384, DP_ID_SELF);
	static uint8_t room[DP_APART_TOP + 64] __attribute__((aligned(64)));
	struct {
		uint64_t cells[2], given[5];
	} frame = {.given = STRINGS};

	aggregate_by_strings(w);
	helper_op = (struct dp_op){.addr = 4};
	acquire(w, false, 0); /* the slot is this thread's */
	w->slots[0].cache = (uintptr_t)room;
	memset(room, 0x5a, sizeof(room));
	for (uint64_t taken = 0; taken < 2; taken++) {
		w->slots[0].apart = taken;
		call_helper(DP_SYM_STACKED_APART, (struct dp_capture){.record = (void *)&frame, .desc = &w->desc[0]});
		cr_expect_eq(!frame.cells[0], taken);
		cr_expect_lt(stack_used(), 400, "%zu bytes", stack_used());
		if (frame.cells[0])
			cr_expect_eq(((const uint64_t *)(uintptr_t)frame.cells[0])[-(int)w->desc[0].stack_words],
			             4 + 8 + 8 + 8 + 9);
	}
	cr_expect_eq(room[DP_APART_CACHE + 256], 0x5a, "it used %d bytes of its own stack", DP_APART_STACK - 256);
	cr_expect_eq(w->lost[0].no_stack, 1);
	cr_expect_eq(world_lost(w), 0);
	world_destroy(w);
}

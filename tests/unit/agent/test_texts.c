/* SPDX-License-Identifier: MIT */
/* Keys that are strings: equal ones have the same cells, wherever they lie, and no pointer harms the process. */
#include "agent/aggregate.h"
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE  4096u
#define NKEYS 16u
#define LOSS  60000u

/* A descriptor and what follows it in a stub. */
static struct {
	struct dp_probe_desc desc;
	struct dp_op op[DP_AGG_KEYS + 1];
} stub;
static struct dp_debug_ctx *w;
static uint8_t *pages;                                    /* one readable page before an unreadable one */
static _Alignas(64) uint8_t memory[DP_AGGS_HEAD + 65536]; /* there is no block but the shared one */

static void set_up(void)
{
	w = world_create(1, 16384, DP_ID_SELF);
	memset(memory, 0, sizeof(memory));
	w->control->answers =
	        (struct dp_aggs){.head = (uintptr_t)memory, .size = 65536, .loss = LOSS, .key_size = 512, .nkeys = NKEYS};
	stub.desc = w->desc[0];
	stub.desc.stack_words = 1 + DP_AGG_KEYS + DP_AGG_TEXT_WORDS;
	stub.desc.reserve = sizeof(stub.desc);
	memset(stub.op, 0, sizeof(stub.op));
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_eq(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
}

TestSuite(texts, .init = set_up);

/* Key number `field` is a string of at most `chars` characters. */
static void ask(unsigned i, uint16_t field, uint32_t chars)
{
	stub.op[i] = (struct dp_op){.size = chars + 4, .field = field};
}

/* The cells of a key of these values, or 0. */
static uint64_t *cells(uint64_t n, const uint64_t *values)
{
	uint64_t given[1 + 2 * DP_AGG_KEYS] = {n};

	memcpy(given + 1, values, 2 * DP_AGG_KEYS * sizeof(*values));
	return (uint64_t *)(uintptr_t)dp_agg_keyed(&stub.desc, (uintptr_t)given).at;
}

static uint64_t *one(uint64_t address)
{
	return cells(1, (uint64_t[2 * DP_AGG_KEYS]){address});
}

static uint64_t *of(const char *text)
{
	return one((uintptr_t)text);
}

/* The words of the key that has these cells: their number, then they. */
static const uint64_t *words(const uint64_t *at)
{
	return at - stub.desc.stack_words;
}

static void expect_text(const uint64_t *at, const char *want)
{
	const size_t n = strlen(want);
	char bytes[200] = {0};

	cr_assert(at);
	cr_expect_eq(words(at)[0], 1 + (n + 7) / 8);
	cr_expect_eq(words(at)[1], n);
	memcpy(bytes, want, n);
	cr_expect_arr_eq(words(at) + 2, bytes, (n + 7) / 8 * 8, "padded with zeros: %s", want);
}

Test(texts, equal_ones_at_different_addresses_share_their_cells)
{
	static const char *const text[] = {"a", "b", "", "1234567", "12345678", "123456789", "123456780"};
	char other[16];

	ask(0, 1, 64);
	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
		uint64_t *at = of(text[i]);

		expect_text(at, text[i]);
		memset(other, 0xff, sizeof(other));
		strcpy(other, text[i]);
		cr_expect_eq(of(other), at, "%s", text[i]);
		for (size_t k = 0; k < i; k++)
			cr_expect_neq(of(text[k]), at, "%s, %s", text[k], text[i]);
	}
}

Test(texts, long_ones_are_cut_as_in_records)
{
	char text[200] = {0}, want[200] = {0};

	ask(0, 1, 64);
	for (size_t n = 60; n < 72; n++) {
		memset(text, 'x', n);
		memset(want, 0, sizeof(want));
		memset(want, 'x', n < 64 ? n : 64);
		if (n > 64)
			strcat(want, "...");
		expect_text(of(text), want);
	}
}

Test(texts, what_cannot_be_read)
{
	const uint64_t bad[] = {1, 4095, UINT64_C(1) << 63, 0x800000000000, UINT64_MAX, UINT64_MAX - 3, (uintptr_t)pages + PAGE};
	uint64_t *null, *unreadable;

	ask(0, 1, 64);
	null = one(0);
	unreadable = one(bad[0]);
	cr_expect_eq(words(null)[1], DP_AGG_TEXT_NULL);
	cr_expect_eq(words(unreadable)[1], DP_AGG_TEXT_UNREADABLE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect_eq(one(bad[i]), unreadable, "%lx", bad[i]);
	memset(pages, 'y', PAGE);
	cr_expect_eq(one((uintptr_t)pages + PAGE - 3), unreadable, "it runs into the next page");
	pages[PAGE - 1] = 0;
	expect_text(one((uintptr_t)pages + PAGE - 3), "yy");
	cr_expect_eq(world_lost(w), 0);
}

Test(texts, lengths)
{
	const struct {
		uint64_t length;
		enum dp_count count;
		const char *want;
	} of[] = {{3, DP_COUNT_UNSIGNED, "pag"},
	          {0, DP_COUNT_UNSIGNED, ""},
	          {UINT64_MAX, DP_COUNT_SIGNED, ""},
	          {4, DP_COUNT_SIGNED, "page"},
	          {5, DP_COUNT_SIGNED, NULL},
	          {UINT64_MAX, DP_COUNT_UNSIGNED, NULL},
	          {UINT64_C(1) << 62, DP_COUNT_SIGNED, NULL}};

	memcpy(pages + PAGE - 4, "page", 4);
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		const uint64_t given[2 * DP_AGG_KEYS] = {(uintptr_t)pages + PAGE - 4, of[i].length};
		uint64_t *at;

		stub.op[0] = (struct dp_op){.size = 68, .field = 1, .count = (uint16_t)of[i].count, .addr = 2};
		at = cells(1, given);
		if (of[i].want)
			expect_text(at, of[i].want);
		else
			cr_expect_eq(words(at)[1], DP_AGG_TEXT_UNREADABLE, "%zu", i);
	}
}

Test(texts, several_beside_numbers)
{
	const uint64_t given[2 * DP_AGG_KEYS] = {77, (uintptr_t) "first string", 0, (uintptr_t) "second"};
	uint64_t *at;

	ask(0, 2, 64);
	ask(1, 3, 10);
	ask(2, 4, 128);
	at = cells(4, given);
	cr_assert(at);
	cr_expect_eq(words(at)[0], 4 + 2 + 0 + 1);
	cr_expect_eq(words(at)[1], 77);
	cr_expect_eq(words(at)[2], 12);
	cr_expect_eq(words(at)[3], DP_AGG_TEXT_NULL);
	cr_expect_eq(words(at)[4], 6);
	cr_expect_arr_eq(words(at) + 5, "first string\0\0\0\0second\0\0", 24);
}

/* Where one string ends and the next begins is part of the key. */
Test(texts, borders_count)
{
	ask(0, 1, 64);
	ask(1, 2, 64);
	cr_expect_neq(cells(2, (uint64_t[8]){(uintptr_t) "12345678", (uintptr_t) ""}),
	              cells(2, (uint64_t[8]){(uintptr_t) "", (uintptr_t) "12345678"}));
}

Test(texts, the_longest_fit)
{
	char text[4][200] = {{0}};
	const uint64_t given[2 * DP_AGG_KEYS] = {(uintptr_t)text[0], (uintptr_t)text[1], (uintptr_t)text[2], (uintptr_t)text[3]};
	const uint32_t most[2][4] = {{61, 61, 61, 69}, {128, 126, 1, 1}};
	uint64_t *at;

	for (unsigned k = 0; k < 4; k++)
		memset(text[k], 'a' + (int)k, 199);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t all = 0;

		for (unsigned k = 0; k < 4; k++) {
			ask(k, (uint16_t)(k + 1), most[i][k]);
			all += dp_agg_text_words(most[i][k] + 3);
		}
		at = cells(4, given);
		cr_assert(at);
		cr_expect_eq(words(at)[0], 4 + all);
		cr_expect_leq(all, DP_AGG_TEXT_WORDS);
	}
}

Test(texts, more_than_there_is_room_for_are_counted)
{
	const struct dp_agg_loss *loss = (const void *)(memory + DP_AGGS_HEAD + LOSS);
	char text[16];
	unsigned found = 0;

	ask(0, 1, 64);
	for (unsigned i = 0; i < NKEYS + 5; i++) {
		snprintf(text, sizeof(text), "text %u", i);
		found += of(text) != NULL;
	}
	cr_expect_eq(found, NKEYS);
	cr_expect_eq(loss[0].crowded, 5);
	cr_expect(of("text 3"), "those that were there still count");
}

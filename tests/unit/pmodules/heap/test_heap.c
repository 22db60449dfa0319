/* SPDX-License-Identifier: MIT */
/* Hazard: a heap that is damaged, foreign or hostile, and a search that has no time left: nothing must be named that was not
 * looked for. */
#include "pmodules/heap/heap.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define HEAP  UINT64_C(0x555500000000)
#define DATA  UINT64_C(0x555400000000)
#define ARENA UINT64_C(0x7f0000000000)
#define SIZE  0x21000u

static uint8_t heap[SIZE], data[0x1000], arena[2 * SIZE];
static unsigned reads, most_reads;

static struct {
	uint64_t start;
	uint8_t *bytes;
	size_t n;
} const parts[] = {{HEAP, heap, sizeof(heap)}, {DATA, data, sizeof(data)}, {ARENA, arena, sizeof(arena)}};

static const char maps[] = "555400000000-555400001000 rw-p 00000000 fe:00 77 /usr/bin/program\n"
                           "555500000000-555500021000 rw-p 00000000 00:00 0 [heap]\n"
                           "7f0000000000-7f0000042000 rw-p 00000000 00:00 0\n";

static size_t read_part(uint64_t addr, void *buf, size_t n, void *unused)
{
	(void)unused;
	reads++;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (addr < parts[i].start || addr - parts[i].start >= parts[i].n)
			continue;
		const size_t in = (size_t)(addr - parts[i].start), got = n < parts[i].n - in ? n : parts[i].n - in;
		memcpy(buf, parts[i].bytes + in, got);
		return got;
	}
	return 0;
}

static bool is_over(void *unused)
{
	(void)unused;
	return most_reads && reads >= most_reads;
}

static void put(uint8_t *bytes, size_t at, uint64_t word)
{
	memcpy(bytes + at, &word, sizeof(word));
}

/* A chunk in use, behind one in use; returns where the next one begins. */
static size_t chunk(uint8_t *bytes, size_t at, uint64_t size)
{
	put(bytes, at + 8, size | 1);
	return at + size;
}

static struct dp_arena texts;

static struct pmodule_heap survey(void)
{
	struct pmodule_heap ret;
	struct dp_image *image = NULL;
	cr_assert_null(dp_image_create(maps, "", 0, &image));
	const struct dp_heap_memory m = {.read = read_part, .over = is_over, .image = image};
	dp_heap_survey(&m, &texts, &ret);
	dp_image_destroy(image);
	return ret;
}

static void begin(void)
{
	memset(heap, 0, sizeof(heap));
	memset(data, 0, sizeof(data));
	memset(arena, 0, sizeof(arena));
	reads = most_reads = 0;
}

static void end(void)
{
	dp_arena_fini(&texts);
}

TestSuite(heap, .init = begin, .fini = end);

/* A thread's cache, four blocks of 56, 72, 88 and 104 bytes, and the free rest. Returns where the rest begins. */
static size_t fill(void)
{
	size_t at = chunk(heap, 0, 0x290);
	for (uint64_t size = 64; size <= 112; size += 16)
		at = chunk(heap, at, size);
	chunk(heap, at, SIZE - at);
	return at;
}

Test(heap, blocks_are_named_unless_a_pointer_leads_to_them)
{
	const uint64_t first = HEAP + 0x290 + 16; /* of 56 bytes; the others are 64, 144 and 240 bytes behind it */
	fill();
	put(data, 0x100, HEAP + 16);                 /* the cache */
	put(data, 0x108, first + 48);                /* the last word */
	put(data, 0x113, first + 64);                /* not aligned */
	put(heap, 0x290 + 16 + 8, first + 144 + 88); /* from the first one right behind the third one */
	const struct pmodule_heap h = survey();
	cr_assert_null(h.why, "%s", h.why);
	cr_assert_eq(h.used, 5);
	cr_assert_eq(h.lost, 2);
	cr_assert_eq(h.lost_bytes, 72 + 104);
	cr_assert_eq(h.ngroups, 2);
	cr_assert_eq(h.group[0].size, 104);
	cr_assert_eq(h.group[0].address, first + 240);
	cr_assert_eq(h.group[1].address, first + 64);
	cr_assert_eq(h.unknown_bytes, 0);
	cr_assert(h.knows_caches, "it is empty");
	cr_assert_not(h.knows_fast, "no arena leads to this heap");
}

Test(heap, behind_damage_nothing_is_named_and_pointers_count)
{
	const uint64_t first = HEAP + 0x290 + 16;
	const size_t rest = fill();
	put(data, 0x100, HEAP + 16);
	put(heap, 0x290 + 64 + 80 + 96 + 8, 0x4141414141414141); /* the last block's size */
	put(heap, rest + 0x500, first + 64);
	const struct pmodule_heap h = survey();
	cr_assert_null(h.why, "%s", h.why);
	cr_assert_eq(h.used, 3, "the block before the damage is doubtful, too");
	cr_assert_eq(h.lost, 1);
	cr_assert_eq(h.group[0].address, first);
	cr_assert_gt(h.unknown_bytes, SIZE - 0x500);
}

Test(heap, an_arena_ends_in_a_fence_or_in_damage)
{
	const uint64_t first = ARENA + ((0x30 + 0x898 + 15) & ~15u);
	const size_t in = (size_t)(first - ARENA);
	fill();
	put(arena, 0, ARENA + 0x30); /* heap_info: its arena, the heap before, its size */
	put(arena, 16, SIZE);
	size_t at = chunk(arena, chunk(arena, in, 0x290), 64);
	put(arena, at + 8, 4096 | 1); /* free: the next one has its size, and no flag */
	put(arena, at + 4096, 4096);
	at = at + 4096;
	put(arena, at + 8, 64);
	put(arena, at + 64 + 8, 16 | 1);          /* a fence */
	put(arena, 0x30 + 96, ARENA + at - 4096); /* an arena's list leads to the header behind a block: it is no root */
	struct pmodule_heap h = survey();
	cr_assert_null(h.why, "%s", h.why);
	cr_assert_eq(h.used, 5 + 3);
	cr_assert_eq(h.lost, 5 + 3, "nothing leads to any");
	cr_assert_eq(h.unknown_bytes, 0);
	put(arena, at, 4095); /* now the size of the free chunk is not confirmed */
	h = survey();
	cr_assert_eq(h.used, 5 + 2);
	cr_assert_gt(h.unknown_bytes, 0);
}

Test(heap, a_heap_of_another_allocator_is_none)
{
	for (size_t i = 0; i < SIZE; i += 8)
		put(heap, i, HEAP + i);
	const struct pmodule_heap h = survey();
	cr_assert_str_eq(h.why, "no heap of glibc's malloc was found");
	cr_assert_eq(h.used + h.lost + h.ngroups, 0);
}

Test(heap, without_enough_time_nothing_is_named)
{
	fill();
	put(data, 0x100, HEAP + 16);
	cr_assert_eq(survey().lost, 4);
	const unsigned all = reads;
	cr_assert_gt(all, 3);
	for (most_reads = 1; most_reads < all; most_reads++) {
		reads = 0;
		const struct pmodule_heap h = survey();
		cr_assert(h.why && strstr(h.why, "time"), "%u reads: %s", most_reads, h.why);
		cr_assert_eq(h.used + h.lost + h.ngroups, 0);
	}
}

/* Sizes, flags, links and addresses in random places: sanitizers watch. */
Test(heap, random_headers_and_links_do_no_harm)
{
	uint64_t seed = 1;
	for (int round = 0; round < 400; round++) {
		begin();
		fill();
		put(arena, 0, ARENA + 0x30);
		put(arena, 16, SIZE);
		chunk(arena, (0x30 + 0x898 + 15) & ~15u, 0x290);
		for (int i = 0; i < 300; i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			const uint64_t r = seed >> 20, value = (r & 3) == 0   ? (r >> 8) % 0x400
			                                       : (r & 3) == 1 ? HEAP + (r >> 8) % (SIZE + 64)
			                                       : (r & 3) == 2 ? ARENA + (r >> 8) % (2 * SIZE)
			                                                      : UINT64_MAX - (r >> 8) % 64;
			uint8_t *where = (r >> 2) & 1 ? heap : arena;
			put(where, ((r >> 3) % 0x1200) * ((r >> 1) & 1 ? 8 : 1), value);
		}
		const struct pmodule_heap h = survey();
		cr_assert_leq(h.lost, h.used);
		cr_assert(!h.why || !h.used);
	}
}

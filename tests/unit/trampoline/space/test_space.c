/* SPDX-License-Identifier: MIT */
/* The address model against a bitmap of pages: an address that it returns is free, and the nearest. */
#include "helper_text.h"

#include "trampoline/space/space.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BASE  UINT64_C(0x100000)
#define PAGES 512

struct model {
	struct dp_space *space;
	bool taken[PAGES];
};

static uint64_t page_addr(size_t page)
{
	return BASE + page * DP_PAGE;
}

static void set(struct model *m, size_t from, size_t n, bool taken)
{
	for (size_t i = from; i < from + n; i++)
		m->taken[i] = taken;
}

static bool all(const struct model *m, size_t from, size_t n, bool taken)
{
	for (size_t i = from; i < from + n; i++)
		if (m->taken[i] != taken)
			return false;
	return true;
}

static void step_reserve_or_release(struct model *m, uint64_t *seed)
{
	size_t from = helper_random(seed) % (PAGES - 16), n = 1 + helper_random(seed) % 16;
	if (helper_random(seed) % 2) {
		cr_assert_null(dp_space_reserve(m->space, page_addr(from) + helper_random(seed) % DP_PAGE, page_addr(from + n)));
		set(m, from, n, true);
	} else if (all(m, from, n, true)) {
		cr_assert(dp_space_release(m->space, page_addr(from), page_addr(from + n)));
		set(m, from, n, false);
	}
	from = helper_random(seed) % (PAGES - 16);
	n = 1 + helper_random(seed) % 16;
	cr_assert_eq(dp_space_is_free(m->space, page_addr(from), page_addr(from + n)), all(m, from, n, false));
}

/* Distance of the nearest free place, by brute force; UINT64_MAX if there is none. */
static uint64_t nearest(const struct model *m, size_t lo, size_t hi, size_t near, size_t n)
{
	uint64_t best = UINT64_MAX;
	for (size_t i = lo; i + n <= hi; i++) {
		uint64_t distance = i >= near ? i - near : i + n <= near ? near - (i + n) : 0;
		if (all(m, i, n, false) && distance < best)
			best = distance;
	}
	return best;
}

static void step_find(const struct model *m, uint64_t *seed)
{
	size_t lo = helper_random(seed) % PAGES, hi = lo + helper_random(seed) % (PAGES - lo + 1);
	size_t near = helper_random(seed) % PAGES, n = 1 + helper_random(seed) % 8;
	uint64_t at = 0, best = nearest(m, lo, hi, near, n);
	bool found = dp_space_find(m->space, page_addr(lo), page_addr(hi), page_addr(near), n * DP_PAGE, &at);
	cr_assert_eq(found, best != UINT64_MAX, "lo %zu hi %zu near %zu n %zu", lo, hi, near, n);
	if (!found)
		return;
	size_t page = (at - BASE) / DP_PAGE;
	cr_assert(page >= lo && page + n <= hi && all(m, page, n, false));
	uint64_t distance = page >= near ? page - near : page + n <= near ? near - (page + n) : 0;
	cr_assert_leq(distance, best + n, "lo %zu hi %zu near %zu n %zu: %zu", lo, hi, near, n, page);
}

Test(space, agrees_with_a_bitmap_of_pages)
{
	struct model m = {0};
	uint64_t seed = 42;
	cr_assert_null(dp_space_create(&m.space));
	for (int i = 0; i < 20000; i++) {
		step_reserve_or_release(&m, &seed);
		step_find(&m, &seed);
	}
	dp_space_destroy(m.space);
}

Test(space, never_below_64_kib_nor_above_user_space)
{
	struct dp_space *space;
	uint64_t at;
	cr_assert_null(dp_space_create(&space));
	cr_expect(!dp_space_alloc(space, 0, 0x10000, 0, DP_PAGE, &at));
	cr_expect(!dp_space_alloc(space, 0x7ffffffff000, UINT64_MAX, UINT64_MAX, DP_PAGE, &at));
	cr_assert(dp_space_alloc(space, 0, UINT64_MAX, 0, DP_PAGE, &at));
	cr_expect_eq(at, 0x10000);
	cr_assert(dp_space_alloc(space, 0, UINT64_MAX, UINT64_MAX, DP_PAGE, &at));
	cr_expect_eq(at, 0x7fffffffe000);
	dp_space_destroy(space);
}

Test(space, what_is_allocated_is_not_given_out_again)
{
	struct dp_space *space;
	uint64_t at, last = 0;
	cr_assert_null(dp_space_create(&space));
	for (int i = 0; i < 16; i++) {
		cr_assert(dp_space_alloc(space, BASE, BASE + 16 * DP_PAGE, BASE, 1, &at));
		cr_expect_eq(at, i ? last + DP_PAGE : BASE);
		last = at;
	}
	cr_expect(!dp_space_alloc(space, BASE, BASE + 16 * DP_PAGE, BASE, 1, &at));
	dp_space_destroy(space);
}

static const char maps[] = "00400000-00401000 r-xp 00000000 00:00 0 \n"
                           "01000000-01100000 rw-p 00000000 00:00 0                  [heap]\n"
                           "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
                           "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0          [stack]\n";

Test(space, heap_and_stack_keep_room_to_grow)
{
	struct dp_image *image;
	struct dp_space *space;
	cr_assert_null(dp_image_create(maps, "", 0, &image));
	cr_assert_null(dp_space_from_image(image, &space));
	cr_expect(!dp_space_is_free(space, 0x400000, 0x401000));
	cr_expect(dp_space_is_free(space, 0x401000, 0x1000000));
	cr_expect(!dp_space_is_free(space, 0x10fff000, 0x11000000));
	cr_expect(dp_space_is_free(space, 0x11100000, 0x7f0000000000));
	cr_expect(!dp_space_is_free(space, 0x7ffcff000000, 0x7ffcff001000));
	cr_expect(dp_space_is_free(space, 0x7ffcfe000000, 0x7ffcfe001000));
	dp_space_destroy(space);
	dp_image_destroy(image);
}

/* This process's own maps without the line of the heap; returns the end of the executable. */
static uint64_t maps_without_heap(char *text, size_t size)
{
	char line[512], exe[256] = "";
	uint64_t end = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	cr_assert(f && readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	*text = '\0';
	while (fgets(line, sizeof(line), f)) {
		uint64_t start, stop;
		char path[256] = "";
		cr_assert_geq(sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %255s", &start, &stop, path), 2);
		if (!strcmp(path, exe) || (start == end && !*path))
			end = stop;
		if (strcmp(path, "[heap]") && strlen(text) + strlen(line) < size)
			strcat(text, line);
	}
	fclose(f);
	return end;
}

Test(space, heap_that_does_not_exist_yet_has_its_room)
{
	static char text[65536];
	const uint64_t gib = 0x40000000, end = maps_without_heap(text, sizeof(text));
	struct dp_image *image;
	struct dp_space *space;
	cr_assert_null(dp_image_create(text, "", 0, &image));
	cr_assert_null(dp_space_from_image(image, &space));
	cr_expect(!dp_space_is_free(space, end, end + DP_PAGE));
	cr_expect(!dp_space_is_free(space, end + gib, end + gib + DP_PAGE));
	dp_space_destroy(space);
	dp_image_destroy(image);
}

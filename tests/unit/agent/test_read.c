/* SPDX-License-Identifier: MIT */
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

static struct dp_debug_ctx *w;
static struct dp_capture capture;
static uint8_t *pages; /* two readable pages between two unreadable ones */

static void setup(void)
{
	struct dp_reservation r;

	w = world_create(1, 16384, DP_ID_SELF);
	w->desc[0].reserve = 2048;
	r = world_reserve(w, 0);
	capture = (struct dp_capture){.record = r.record, .slot = r.slot, .desc = &w->desc[0]};
	capture.cursor = r.record->payload + DP_MASK_BYTES;
	pages = (uint8_t *)mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + PAGE;
	mprotect(pages, 2 * PAGE, PROT_READ | PROT_WRITE);
	memset(pages, 'x', 2 * PAGE);
}

static uint64_t mask(void)
{
	return *(uint64_t *)capture.record->payload;
}

static struct dp_op op_at(const void *addr, uint32_t size, uint16_t field)
{
	return (struct dp_op){.addr = (uintptr_t)addr, .size = size, .field = field};
}

/* After any read, memory after the cursor is zero: it may be given back to the ring. */
static void expect_zero_behind_cursor(void)
{
	for (const uint8_t *p = capture.cursor; p < (uint8_t *)capture.record + 2048; p++)
		cr_assert_eq(*p, 0);
}

TestSuite(read, .init = setup);
TestSuite(string, .init = setup);

Test(read, copies_what_is_there)
{
	struct dp_op op = op_at(pages, 3, 0);
	uint8_t *start = capture.cursor;

	memcpy(pages, "abc", 3);
	dp_agent_read(&capture, &op);
	cr_expect_eq(capture.cursor, start + 3);
	cr_expect_arr_eq(start, "abc", 3);
	cr_expect_eq(mask(), 0);
}

Test(read, crosses_a_page)
{
	struct dp_op op = op_at(pages + PAGE - 4, 8, 0);

	memcpy(pages + PAGE - 4, "abcdefgh", 8);
	dp_agent_read(&capture, &op);
	cr_expect_arr_eq(capture.cursor - 8, "abcdefgh", 8);
	cr_expect_eq(mask(), 0);
}

Test(read, unreadable_addresses_give_zeroes_and_a_bit)
{
	const uint64_t bad[] = {
	        0, 1, 4096, 0x7fffffffffff, 0x800000000000, 0x8000000000000000, 0xffff800000000000, UINT64_MAX - 3, UINT64_MAX};
	uint64_t expected = 0;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct dp_op op = {.addr = bad[i], .size = 8, .field = (uint16_t)(i * 7)};

		expected |= UINT64_C(1) << (i * 7);
		memset(capture.cursor, 0, 8);
		dp_agent_read(&capture, &op);
		cr_expect_eq(*(uint64_t *)(capture.cursor - 8), 0);
		cr_expect_eq(mask(), expected, "address %#lx", bad[i]);
	}
}

/* The first half is readable: none of it may stay in the record. */
Test(read, half_readable_is_unreadable)
{
	struct dp_op op = op_at(pages + 2 * PAGE - 4, 8, 63);

	dp_agent_read(&capture, &op);
	cr_expect_eq(*(uint64_t *)(capture.cursor - 8), 0);
	cr_expect_eq(mask(), UINT64_C(1) << 63);
}

Test(read, leaves_errno_alone)
{
	struct dp_op op = op_at(NULL, 8, 0);

	errno = 77;
	dp_agent_read(&capture, &op);
	cr_expect_eq(errno, 77);
}

Test(string, every_length_at_every_distance_from_an_unreadable_page)
{
	uint8_t *end = pages + 2 * PAGE;

	for (uint32_t n = 0; n < 40; n++) {
		for (uint32_t gap = 0; gap < 3; gap++) {
			uint8_t *s = end - gap - n - 1, *start = capture.cursor;
			struct dp_op op = op_at(s, 64, 0);

			memset(pages, 'y', 2 * PAGE);
			memset(s, 'a', n);
			s[n] = 0;
			dp_agent_string(&capture, &op, 0);
			cr_assert_eq(capture.cursor, start + n + 1);
			cr_assert_str_eq((char *)start, (char *)s);
			cr_assert_eq(mask(), 0);
			expect_zero_behind_cursor();
			memset(start, 0, n + 1);
			capture.cursor = start;
		}
	}
}

Test(string, crosses_a_page)
{
	struct dp_op op = op_at(pages + PAGE - 3, 64, 0);
	uint8_t *start = capture.cursor;

	memcpy(pages + PAGE - 3, "abcdef", 7);
	dp_agent_string(&capture, &op, 0);
	cr_expect_str_eq((char *)start, "abcdef");
	cr_expect_eq(capture.cursor, start + 7);
	expect_zero_behind_cursor();
}

static const char *counted(uint32_t size, enum dp_count kind, const void *addr, uint64_t n)
{
	struct dp_op op = op_at(addr, size, 0);
	char *start = (char *)capture.cursor;

	op.count = (uint16_t)kind;
	memset(start, 0, 64); /* what the last one left */
	*(uint64_t *)capture.record->payload = 0;
	dp_agent_string(&capture, &op, n);
	cr_assert_eq(capture.cursor, (uint8_t *)start + strlen(start) + 1);
	expect_zero_behind_cursor();
	capture.cursor = (uint8_t *)start;
	return start;
}

Test(string, ends_after_its_length)
{
	const char *text;

	memcpy(pages, "GET /index HTTP/1.1", 19);
	cr_expect_str_eq(counted(64, DP_COUNT_UNSIGNED, pages, 10), "GET /index");
	cr_expect_str_eq(counted(64, DP_COUNT_SIGNED, pages, 3), "GET");
	cr_expect_eq(mask(), 0);
	text = counted(16, DP_COUNT_UNSIGNED, pages, UINT64_MAX);
	cr_expect_str_eq(text, "GET /index H...");
	text = counted(16, DP_COUNT_UNSIGNED, pages, 15);
	cr_expect_str_eq(text, "GET /index HTTP", "it fits");
}

Test(string, a_length_below_one_reads_nothing)
{
	cr_expect_str_eq(counted(64, DP_COUNT_UNSIGNED, NULL, 0), "");
	cr_expect_str_eq(counted(64, DP_COUNT_SIGNED, NULL, (uint64_t)INT64_MIN), "");
	cr_expect_str_eq(counted(64, DP_COUNT_SIGNED, NULL, (uint64_t)-1), "");
	cr_expect_eq(mask(), 0);
	cr_expect_str_eq(counted(64, DP_COUNT_SIGNED, NULL, 1), DP_NULL_TEXT);
	cr_expect_eq(mask(), 1, "a NULL with a length is no string");
}

/* Not read at all, so that it is told from what cannot be read; an array at NULL is a member of what is not there. */
Test(string, null_is_marked_and_has_a_text)
{
	static const char *const fits[] = {"", "", "N", "NU", "NUL", "NULL", "NULL"};

	for (uint32_t size = 1; size < 7; size++) {
		cr_expect_str_eq(counted(size, DP_COUNT_NONE, NULL, 0), fits[size]);
		cr_expect_eq(mask(), 1);
	}
	cr_expect_str_eq(counted(64, DP_COUNT_ARRAY, NULL, 0), "");
	cr_expect_eq(mask(), 1);
	memcpy(pages, "text", 5);
	cr_expect_str_eq(counted(64, DP_COUNT_ARRAY, pages, 0), "text");
	cr_expect_eq(mask(), 0);
}

Test(string, reads_nothing_behind_its_length)
{
	uint8_t *s = pages + 2 * PAGE - 5;

	memcpy(s, "/path", 5);
	cr_expect_str_eq(counted(64, DP_COUNT_UNSIGNED, s, 5), "/path");
	cr_expect_eq(mask(), 0);
	cr_expect_str_eq(counted(64, DP_COUNT_UNSIGNED, s, 6), "");
	cr_expect_eq(mask(), 1);
}

Test(string, cut_at_the_limit_ends_in_dots)
{
	struct dp_op op = op_at(pages, 16, 0);
	uint8_t *start = capture.cursor;

	dp_agent_string(&capture, &op, 0);
	cr_expect_str_eq((char *)start, "xxxxxxxxxxxx...");
	cr_expect_eq(capture.cursor, start + 16);
	cr_expect_eq(mask(), 0);
}

Test(string, exactly_fitting_is_not_cut)
{
	struct dp_op op = op_at(pages, 16, 0);
	uint8_t *start = capture.cursor;

	pages[15] = 0;
	dp_agent_string(&capture, &op, 0);
	cr_expect_str_eq((char *)start, "xxxxxxxxxxxxxxx");
	cr_expect_eq(capture.cursor, start + 16);
}

Test(string, tiny_limits_stay_within_bounds)
{
	for (uint32_t limit = 1; limit <= 4; limit++) {
		struct dp_op op = op_at(pages, limit, 0);
		uint8_t *start = capture.cursor;

		dp_agent_string(&capture, &op, 0);
		cr_expect_eq(capture.cursor, start + limit);
		cr_expect_eq(strlen((char *)start), limit - 1);
		cr_expect_eq(strspn((char *)start, "."), limit - 1);
		expect_zero_behind_cursor();
	}
}

Test(string, running_into_unreadable_memory_is_unreadable)
{
	struct dp_op op = op_at(pages + 2 * PAGE - 10, 1024, 5);
	uint8_t *start = capture.cursor;

	dp_agent_string(&capture, &op, 0);
	cr_expect_eq(capture.cursor, start + 1);
	cr_expect_eq(*start, 0);
	cr_expect_eq(mask(), 1u << 5);
	expect_zero_behind_cursor();
}

Test(string, limit_in_front_of_unreadable_memory_is_only_cut)
{
	struct dp_op op = op_at(pages + 2 * PAGE - 10, 10, 5);
	uint8_t *start = capture.cursor;

	dp_agent_string(&capture, &op, 0);
	cr_expect_str_eq((char *)start, "xxxxxx...");
	cr_expect_eq(mask(), 0);
}

Test(string, address_space_ends_are_unreadable)
{
	const uint64_t bad[] = {1, 0x7fffffffffff, 0x800000000000, UINT64_MAX, UINT64_MAX - 4095};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct dp_op op = {.addr = bad[i], .size = 100, .field = (uint16_t)i};

		dp_agent_string(&capture, &op, 0);
		cr_expect_eq(capture.cursor[-1], 0);
		cr_expect(mask() >> i & 1, "address %#lx", bad[i]);
	}
}

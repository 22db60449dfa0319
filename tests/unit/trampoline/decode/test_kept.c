/* SPDX-License-Identifier: MIT */
/* Code that must not change is recognised by its bytes, wherever it is, and only in code. */
#include "trampoline/trampoline.h"

#include <criterion/criterion.h>
#include <string.h>

#define AT UINT64_C(0x400000)

static const uint8_t code[] = {
        0x90, 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05, /* +1: glibc, musl, Go */
        0xcc, 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x0b, /* not one: ud2 */
        0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x90,             /* +20 */
        0xb8, 0x0e, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x0f,             /* not one: another call */
};

static size_t kept(bool exec, size_t n, struct dp_protected *ret, size_t most)
{
	const struct dp_segment segment = {AT, code, n, exec};
	const struct dp_text text = {.segment = &segment, .nsegments = 1};
	return dp_text_find_protected(&text, ret, most);
}

Test(kept, both_forms_of_restorers_are_found)
{
	struct dp_protected found[4];
	cr_assert_eq(kept(true, sizeof(code), found, 4), 2);
	cr_expect(found[0].start == AT + 1 && found[0].size == 9);
	cr_expect(found[1].start == AT + 20 && found[1].size == 7);
}

Test(kept, no_more_than_there_is_room_for)
{
	struct dp_protected found[1];
	cr_expect_eq(kept(true, sizeof(code), found, 1), 1);
	cr_expect_eq(kept(true, sizeof(code), found, 0), 0);
}

Test(kept, one_that_the_segment_cuts_off_is_none)
{
	struct dp_protected found[4];
	cr_expect_eq(kept(true, 9, found, 4), 0);
	cr_expect_eq(kept(true, 10, found, 4), 1);
}

Test(kept, a_syscall_is_found_wherever_it_begins)
{
	uint8_t bytes[200];
	for (size_t n = 0; n <= sizeof(bytes); n++)
		for (size_t at = 0; at + 1 < sizeof(bytes); at++) {
			memset(bytes, 0x0f, at + 1); /* half a syscall, many times */
			memset(bytes + at + 1, 0x05, sizeof(bytes) - at - 1);
			const uint8_t *const found = dp_find_syscall(bytes, bytes + n);
			cr_assert_eq(found, at + 2 <= n ? bytes + at : NULL, "%zu of %zu", at, n);
		}
}

Test(kept, data_is_not_kept)
{
	struct dp_protected found[4];
	cr_expect_eq(kept(false, sizeof(code), found, 4), 0);
}

/* Expects one protected range in these bytes: [from, to). */
static void expect(const char *what, const uint8_t *bytes, size_t n, uint64_t from, uint64_t to)
{
	struct dp_protected found[4];
	const struct dp_segment segment = {AT, bytes, n, true};
	struct dp_text text = {.segment = &segment, .nsegments = 1, .keep = found};
	text.nkeep = dp_text_find_protected(&text, found, 4);
	cr_assert_eq(text.nkeep, 1, "%s", what);
	cr_expect_eq(found[0].start, AT + from, "%s: from +%lu", what, (unsigned long)(found[0].start - AT));
	cr_expect_eq(found[0].size, to - from, "%s: %lu bytes", what, (unsigned long)found[0].size);
	cr_expect_null(dp_text_protected(&text, AT + from - 1, 1), "%s: before it", what);
	cr_expect_eq(dp_text_protected(&text, AT + from - 1, 2), &found[0], "%s: into it", what);
	cr_expect_eq(dp_text_protected(&text, AT + to - 1, 1), &found[0], "%s: its last byte", what);
	cr_expect_null(dp_text_protected(&text, AT + to, 1), "%s: after it", what);
}

#define EXPECT(what, from, to, ...) expect(what, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), from, to)

Test(kept, ends_of_threads_from_where_the_stack_is_gone)
{
	EXPECT("__unmapself", 6, 18, 0x90, 0xb8, 0x0b, 0, 0, 0, 0x0f, 0x05, 0x48, 0x31, 0xff, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05,
	       0x90);
	EXPECT("exitThread", 5, 23, 0x48, 0x8b, 0x44, 0x24, 0x08, 0xc7, 0x00, 0, 0, 0, 0, 0xbf, 0, 0, 0, 0, 0xb8, 0x3c, 0, 0, 0,
	       0x0f, 0x05, 0xcc, 0xeb, 0xfe);
	EXPECT("exitThread, xor", 5, 20, 0x48, 0x8b, 0x44, 0x24, 0x08, 0xc7, 0x00, 0, 0, 0, 0, 0x31, 0xff, 0xb8, 0x3c, 0, 0, 0,
	       0x0f, 0x05, 0xcc, 0xeb, 0xfe);
}

#define CALL                                                                                                                     \
	0x49, 0x89, 0xfb, 0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7, 0x48, 0x89, 0xce, 0x4c, 0x89, 0xc2, 0x4d, 0x89, 0xca, 0x4c, 0x8b,  \
	        0x44, 0x24, 0x08, 0x4c, 0x8b, 0x4c, 0x24, 0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05

Test(kept, cancellable_calls_from_the_look_at_the_flag_to_the_syscall)
{
	EXPECT("musl", 2, 43, 0x90, 0x90, 0x8b, 0x07, 0x85, 0xc0, 0x75, 0x24, CALL, 0xc3);
	EXPECT("glibc", 4, 50, 0xf3, 0x0f, 0x1e, 0xfa, 0x8b, 0x07, 0xf6, 0x07, 0x08, 0x0f, 0x85, 1, 2, 3, 4, CALL, 0xc3);
	EXPECT("no look that is known", 4, 39, 0x90, 0x90, 0x90, 0x90, CALL, 0xc3);
}

Test(kept, an_empty_range_keeps_nothing)
{
	const struct dp_protected empty = {AT + 1, 0, ""};
	const struct dp_text text = {.keep = &empty, .nkeep = 1};
	cr_expect_null(dp_text_protected(&text, AT, 4));
}

/* SPDX-License-Identifier: MIT */
/* Signal restorers are found by their bytes, wherever they are, and only in code. */
#include "trampoline/trampoline.h"

#include <criterion/criterion.h>

#define AT UINT64_C(0x400000)

static const uint8_t code[] = {
        0x90, 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05, /* +1: glibc, musl, Go */
        0xcc, 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x0b, /* not one: ud2 */
        0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x90,             /* +20 */
        0xb8, 0x0e, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x0f,             /* not one: another call */
};

static size_t restorers(bool exec, size_t n, struct dp_range *ret, size_t most)
{
	const struct dp_segment segment = {AT, code, n, exec};
	const struct dp_text text = {.segment = &segment, .nsegments = 1};
	return dp_text_restorers(&text, ret, most);
}

Test(restorer, both_forms_are_found)
{
	struct dp_range found[4];
	cr_assert_eq(restorers(true, sizeof(code), found, 4), 2);
	cr_expect(found[0].start == AT + 1 && found[0].size == 9);
	cr_expect(found[1].start == AT + 20 && found[1].size == 7);
}

Test(restorer, no_more_than_there_is_room_for)
{
	struct dp_range found[1];
	cr_expect_eq(restorers(true, sizeof(code), found, 1), 1);
	cr_expect_eq(restorers(true, sizeof(code), found, 0), 0);
}

Test(restorer, one_that_the_segment_cuts_off_is_none)
{
	struct dp_range found[4];
	cr_expect_eq(restorers(true, 9, found, 4), 0);
	cr_expect_eq(restorers(true, 10, found, 4), 1);
}

Test(restorer, data_is_no_restorer)
{
	struct dp_range found[4];
	cr_expect_eq(restorers(false, sizeof(code), found, 4), 0);
}

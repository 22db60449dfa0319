/* SPDX-License-Identifier: MIT */
/* Functions by the unwind index: the same results as a walk through the whole table, and none where the table has none. */
#include "helper_text.h"

#include "trampoline/code/text.h"

#include <criterion/criterion.h>

Test(text_function, agrees_with_a_walk_through_the_index)
{
	static struct helper_module libc;
	uint64_t seed = 2718281828;
	unsigned known = 0;
	helper_libc(&libc);
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t addr = libc.code + helper_random(&seed) % (libc.code_end - libc.code);
		struct dp_range range;
		bool expected = helper_function(&libc, addr), found = dp_text_function(&libc.text, addr, &range);
		cr_assert_eq(found, expected, "0x%lx: %d", addr, found);
		if (!found)
			continue;
		cr_assert_eq(range.start, libc.text.function);
		cr_assert_eq(range.size, libc.text.size);
		known++;
	}
	cr_expect_gt(known, 2000);
}

Test(text_function, none_where_there_is_no_index)
{
	static const uint8_t code[] = {0x90, 0x90, 0xc3};
	struct helper_module m;
	struct dp_range range;
	helper_code(&m, 0x400000, code, sizeof(code));
	cr_expect(!dp_text_function(&m.text, 0x400000, &range));
}

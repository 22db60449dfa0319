/* SPDX-License-Identifier: MIT */
#include "pmodules/source/pages.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(pages, many_are_found_again_and_come_in_order)
{
	struct dp_page_cache p;
	dp_pages_init(&p, UINT64_C(64) << 20);
	for (uint64_t i = 5000; i > 0; i--) {
		uint8_t *bytes = dp_pages_room(&p, 1);
		cr_assert_not_null(bytes);
		memcpy(bytes, &i, sizeof(i));
		struct dp_kept_page *page = dp_pages_at(&p, i * 7 * DP_PAGE_BYTES);
		page->bytes = bytes;
		page->state = DP_PAGE_HERE;
	}
	for (uint64_t i = 1; i <= 5000; i++) {
		const struct dp_kept_page *page = dp_pages_find(&p, i * 7 * DP_PAGE_BYTES);
		cr_assert(page && !memcmp(page->bytes, &i, sizeof(i)));
		cr_assert_null(dp_pages_find(&p, (i * 7 + 1) * DP_PAGE_BYTES));
	}
	size_t n;
	struct dp_kept_page **list = dp_pages_sorted(&p, &n);
	cr_assert_eq(n, 5000);
	for (size_t i = 1; i < n; i++)
		cr_assert(list[i - 1]->addr < list[i]->addr);
	free(list);
	dp_pages_fini(&p);
}

Test(pages, the_limit_holds_and_room_that_is_given_back_counts_again)
{
	struct dp_page_cache p;
	dp_pages_init(&p, 8 * DP_PAGE_BYTES);
	uint8_t *first = dp_pages_room(&p, 6);
	cr_assert_not_null(first);
	cr_assert_null(dp_pages_room(&p, 3));
	dp_pages_give_back(&p, 4);
	cr_assert_eq(dp_pages_room(&p, 6), first + 2 * DP_PAGE_BYTES);
	cr_assert_null(dp_pages_room(&p, 1));
	dp_pages_fini(&p);
}

Test(pages, a_new_moment_keeps_only_what_cannot_change)
{
	struct dp_page_cache p;
	dp_pages_init(&p, 8 * DP_PAGE_BYTES);
	const enum dp_page_state was[] = {DP_PAGE_HERE, DP_PAGE_HERE, DP_PAGE_ABSENT};
	for (unsigned i = 0; i < 3; i++) {
		struct dp_kept_page *page = dp_pages_at(&p, (i + 1) * DP_PAGE_BYTES);
		*page = (struct dp_kept_page){page->addr, dp_pages_room(&p, 1), was[i], true, true, i == 1};
	}
	dp_pages_age(&p);
	const struct dp_kept_page *changing = dp_pages_find(&p, DP_PAGE_BYTES), *constant = dp_pages_find(&p, 2 * DP_PAGE_BYTES),
	                          *absent = dp_pages_find(&p, 3 * DP_PAGE_BYTES);
	cr_expect(changing->state == DP_PAGE_STALE && changing->bytes && !changing->used && !changing->late);
	cr_expect(constant->state == DP_PAGE_HERE && !constant->used);
	cr_expect(absent->state == DP_PAGE_STALE && !absent->bytes);
	dp_pages_fini(&p);
}

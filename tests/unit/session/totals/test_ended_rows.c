/* SPDX-License-Identifier: MIT */
#include "session/totals/ended_rows.h"

#include <criterion/criterion.h>

#define CELLS 3u

static struct dp_row_key key(uint64_t group, uint64_t value)
{
	return (struct dp_row_key){.group = group, .probe = 1, .keyed = 1, .key = value};
}

static bool add(const struct dp_ended_row *row, void *data)
{
	uint64_t *sum = data;
	sum[0]++;
	for (unsigned i = 0; i < CELLS; i++)
		sum[1] += row->cells[i];
	return true;
}

Test(ended_rows, equal_keys_share_a_row_and_others_do_not)
{
	struct dp_ended_rows *rows = dp_ended_rows_create(CELLS, 1 << 20);
	uint64_t sum[2] = {0};
	for (uint64_t i = 0; i < 1000; i++) {
		const struct dp_row_key k = key(i % 2, i % 10);
		struct dp_ended_row *row = dp_ended_rows_get(rows, &k);
		cr_assert_not_null(row);
		cr_expect(row->key.group == i % 2 && row->key.key == i % 10);
		row->cells[i % CELLS] += i;
	}
	cr_expect(dp_ended_rows_each(rows, add, sum));
	cr_expect_eq(sum[0], 10);
	cr_expect_eq(sum[1], 999 * 500);
	dp_ended_rows_destroy(rows);
}

Test(ended_rows, each_part_of_a_key_matters)
{
	struct dp_ended_rows *rows = dp_ended_rows_create(CELLS, 1 << 20);
	const struct dp_row_key k[] = {{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
	for (size_t i = 0; i < 5; i++)
		dp_ended_rows_get(rows, &k[i])->cells[0] = i + 1;
	for (size_t i = 0; i < 5; i++)
		cr_expect_eq(dp_ended_rows_get(rows, &k[i])->cells[0], i + 1);
	dp_ended_rows_destroy(rows);
}

Test(ended_rows, memory_is_limited_and_what_is_there_stays)
{
	struct dp_ended_rows *rows = dp_ended_rows_create(CELLS, 64 << 10);
	uint64_t found = 0, sum[2] = {0};
	for (uint64_t i = 0; i < 100000; i++) {
		const struct dp_row_key k = key(0, i);
		struct dp_ended_row *row = dp_ended_rows_get(rows, &k);
		found += row != NULL;
		if (row)
			row->cells[0] = 7;
	}
	cr_expect(found > 100 && found < 1000);
	const struct dp_row_key first = key(0, 0);
	cr_expect_eq(dp_ended_rows_get(rows, &first)->cells[0], 7, "a key that has a row still finds it");
	dp_ended_rows_each(rows, add, sum);
	cr_expect_eq(sum[1], 7 * found);
	dp_ended_rows_destroy(rows);
}

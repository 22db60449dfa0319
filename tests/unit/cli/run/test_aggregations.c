/* SPDX-License-Identifier: MIT */
/* The rows that --top leaves out are those with the least values, not those with the fewest hits. */
#include "cli/options/options.h"
#include "output/aggregations/aggregations.h"

#include <criterion/criterion.h>
#include <string.h>

enum { N = 6 };

struct known { /* of one row */
	const char *name;
	uint64_t hits;
	int64_t sum, min, max;
};

static const struct known known[N] = {
        {"often", 1000, 1000, 1, 1}, {"never", 0, 0, 0, 0},       {"large", 2, 5000, -7, 5007},
        {"below", 10, -90, -9, -9},  {"often", 1000, 1000, 1, 1}, {"widest", 3, 4500, 1400, 1600},
};

static uint64_t flipped(int64_t v)
{
	return (uint64_t)v ^ UINT64_C(1) << 63;
}

/* The positions in `known`, in the order of the rows. */
static void order(enum dp_aggs_rank rank, int ret[N])
{
	static uint64_t cells[N][DP_AGG_WORDS];
	struct dp_agg_row row[N];
	memset(row, 0, sizeof(row));
	for (int i = 0; i < N; i++) {
		const struct known *k = &known[i];
		memset(cells[i], 0, sizeof(cells[i]));
		cells[i][DP_AGG_WORD_COUNT] = k->hits;
		cells[i][DP_AGG_WORD_SUM] = (uint64_t)k->sum;
		cells[i][DP_AGG_WORD_MIN] = k->hits ? ~flipped(k->min) : 0;
		cells[i][DP_AGG_WORD_MAX] = k->hits ? flipped(k->max) : 0;
		row[i] = (struct dp_agg_row){.name = k->name, .hits = k->hits, .cells = cells[i]};
	}
	dp_aggs_sort(row, N, rank);
	for (int i = 0; i < N; i++)
		ret[i] = (int)((row[i].cells - cells[0]) / DP_AGG_WORDS);
}

static void comes_as(enum dp_aggs_rank rank, const int want[N])
{
	int is[N];
	order(rank, is);
	for (int i = 0; i < N; i++)
		cr_expect_eq(is[i], want[i], "rank %d, place %d: row %d, not %d", (int)rank, i, is[i], want[i]);
}

Test(answers, rows_come_by_their_own_value)
{
	comes_as(DP_RANK_HITS, (const int[N]){0, 4, 3, 5, 2, 1});
	comes_as(DP_RANK_SUM, (const int[N]){2, 5, 0, 4, 3, 1});
	comes_as(DP_RANK_AVERAGE, (const int[N]){2, 5, 0, 4, 3, 1});
	comes_as(DP_RANK_MIN, (const int[N]){5, 0, 4, 2, 3, 1});
	comes_as(DP_RANK_MAX, (const int[N]){2, 5, 0, 4, 3, 1});
}

Test(answers, an_average_is_of_its_own_hits)
{
	uint64_t cells[2][DP_AGG_WORDS] = {{0, 300}, {0, 200}};
	struct dp_agg_row row[2] = {{.name = "a", .hits = 100, .cells = cells[0]}, {.name = "b", .hits = 10, .cells = cells[1]}};
	dp_aggs_sort(row, 2, DP_RANK_AVERAGE);
	cr_expect_str_eq(row[0].name, "b");
	dp_aggs_sort(row, 2, DP_RANK_SUM);
	cr_expect_str_eq(row[0].name, "a");
}

static enum dp_aggs_rank asked(const char *what, const char *other)
{
	char *argv[] = {"dynprobe", "--pid", "1", "--function", "f", (char *)what, "rdi", (char *)other, "rdi", NULL};
	struct dp_options o;
	cr_assert_null(dp_options_parse_verb(DP_VERB_RUN, other ? 9 : 7, argv, &o));
	const enum dp_aggs_rank rank = o.trace.asked.rank;
	dp_options_fini(&o);
	return rank;
}

Test(answers, the_first_question_is_what_rows_are_sorted_by)
{
	cr_expect_eq(asked("--sum", NULL), DP_RANK_SUM);
	cr_expect_eq(asked("--avg", NULL), DP_RANK_AVERAGE);
	cr_expect_eq(asked("--avg", "--max"), DP_RANK_AVERAGE);
	cr_expect_eq(asked("--max", "--avg"), DP_RANK_MAX);
	cr_expect_eq(asked("--min", "--sum"), DP_RANK_MIN);
	cr_expect_eq(asked("--hist", NULL), DP_RANK_HITS);
}

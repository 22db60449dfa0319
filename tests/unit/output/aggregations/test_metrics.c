/* SPDX-License-Identifier: MIT */
/* Metrics: what a scraper reads. Labels that could end early, buckets that are not cumulative, series that appear twice. */
#include "output/aggregations/aggregations.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *written(const struct dp_aggs_shown *a)
{
	char *is = NULL;
	size_t n;
	FILE *to = open_memstream(&is, &n);
	dp_aggs_metrics(a, to);
	fclose(to);
	return is;
}

static void has(const char *text, const char *line)
{
	cr_expect(strstr(text, line), "'%s' is not in:\n%s", line, text);
}

Test(metrics, a_count_by_two_keys)
{
	const struct dp_agg_part part = {.what = DP_AGG_COUNT};
	const struct dp_key_asked key[2] = {{.kind = DP_KEY_VALUE, .text = (char *)"r->len"},
	                                    {.kind = DP_KEY_CALLER, .text = (char *)"caller"}};
	const struct dp_key_shown shown[2] = {{.number = -7}, {.word = "a\"b\\c\n\377"}};
	const uint64_t cells[1] = {12};
	const struct dp_agg_row row[2] = {{.name = "f", .keys = shown, .nkeys = 2, .cells = cells, .hits = 12},
	                                  {.name = "f", .cells = cells, .crowded = 3}};
	const struct dp_aggs_shown a = {
	        .part = &part, .nparts = 1, .by = "r->len,caller", .key = key, .nkeys = 2, .row = row, .n = 2};
	char *text = written(&a);
	has(text, "# TYPE dynprobe_hits_total counter\n"
	          "dynprobe_hits_total{probe=\"f\",key_r__len=\"-7\",caller=\"a\\\"b\\\\c\\\\n\\\\xff\"} 12\n# HELP");
	has(text, "dynprobe_uncounted_hits_total{probe=\"f\",reason=\"crowded\"} 3\n");
	free(text);
}

Test(metrics, sums_and_durations_have_families_of_their_own)
{
	const struct dp_agg_part part[2] = {{.what = DP_AGG_SUM, .value = "n"}, {.what = DP_AGG_SUM, .value = "duration"}};
	const uint64_t cells[2 * DP_AGG_WORDS] = {2, (uint64_t)-5, 0, 0, 2, 1500000000};
	const struct dp_agg_row row = {.name = "f_return", .title = "f:return", .cells = cells, .hits = 2};
	const struct dp_aggs_shown a = {.part = part, .nparts = 2, .row = &row, .n = 1};
	char *text = written(&a);
	has(text, "dynprobe_sum{probe=\"f:return\",expr=\"n\"} -5\n");
	has(text, "dynprobe_duration_sum_seconds{probe=\"f:return\",expr=\"duration\"} 1.500000000\n");
	free(text);
}

/* What a key says is not said again. */
Test(metrics, series_name_their_process)
{
	const struct dp_agg_part part = {.what = DP_AGG_COUNT};
	const struct dp_key_asked key = {.kind = DP_KEY_PID, .text = (char *)"pid"};
	const uint64_t cells[1] = {12};
	const struct dp_agg_row
	        row = {.name = "f", .title = "Box<int>::f", .pid = 42, .comm = "a\"b", .cells = cells, .hits = 12, .unpaired = 1},
	        keyed = {.name = "f", .pid = 42, .comm = "shop", .keyed = true, .key = 42, .cells = cells, .hits = 12};
	struct dp_aggs_shown a = {.part = &part, .nparts = 1, .row = &row, .n = 1};
	char *text = written(&a);
	has(text, "\ndynprobe_hits_total{probe=\"Box<int>::f\",pid=\"42\",comm=\"a\\\"b\"} 12\n");
	has(text, "\ndynprobe_uncounted_hits_total{probe=\"Box<int>::f\",pid=\"42\",comm=\"a\\\"b\",reason=\"unpaired\"} 1\n");
	free(text);
	a = (struct dp_aggs_shown){.part = &part, .nparts = 1, .by = "pid", .key = &key, .nkeys = 1, .row = &keyed, .n = 1};
	text = written(&a);
	has(text, "\ndynprobe_hits_total{probe=\"f\",comm=\"shop\",pid=\"42\"} 12\n");
	free(text);
}

/* A user may give a probe the name that people read of another one. */
Test(metrics, probes_of_one_name_have_the_events_name_too)
{
	const struct dp_agg_part part = {.what = DP_AGG_COUNT};
	const uint64_t cells[1] = {1};
	const struct dp_agg_row row[4] = {{.name = "f_2", .title = "f (inlined in g)", .cells = cells, .hits = 1},
	                                  {.name = "h", .title = "h()", .cells = cells, .hits = 1},
	                                  {.name = "f", .title = "f (inlined in g)", .cells = cells, .hits = 1},
	                                  {.name = "h()", .cells = cells, .hits = 1}};
	const struct dp_aggs_shown one = {.part = &part, .nparts = 1, .row = row, .n = 2},
	                           all = {.part = &part, .nparts = 1, .row = row, .n = 4};
	char *text = written(&one);
	cr_expect_not(strstr(text, "event="), "%s", text);
	free(text);
	text = written(&all);
	has(text, "{probe=\"f (inlined in g)\",event=\"f_2\"} 1\ndynprobe_hits_total{probe=\"h()\",event=\"h\"} 1\n"
	          "dynprobe_hits_total{probe=\"f (inlined in g)\",event=\"f\"} "
	          "1\ndynprobe_hits_total{probe=\"h()\",event=\"h()\"} 1\n");
	free(text);
}

Test(metrics, buckets_are_cumulative_and_their_bounds_belong_to_them)
{
	const struct dp_agg_part part = {.what = DP_AGG_LINEAR, .value = "n", .low = 10, .step = 5, .buckets = 2};
	const uint64_t cells[4] = {1, 2, 0, 4}; /* below 10, [10, 15), [15, 20), from 20 on */
	const struct dp_agg_row row = {.name = "f", .cells = cells, .hits = 7};
	const struct dp_aggs_shown a = {.part = &part, .nparts = 1, .row = &row, .n = 1};
	char *text = written(&a);
	has(text, "dynprobe_value_bucket{probe=\"f\",expr=\"n\",le=\"9\"} 1\n"
	          "dynprobe_value_bucket{probe=\"f\",expr=\"n\",le=\"14\"} 3\n"
	          "dynprobe_value_bucket{probe=\"f\",expr=\"n\",le=\"19\"} 3\n"
	          "dynprobe_value_bucket{probe=\"f\",expr=\"n\",le=\"+Inf\"} 7\n"
	          "dynprobe_value_count{probe=\"f\",expr=\"n\"} 7\n");
	free(text);
}

/* The hidden part is no metric of its own. Without a value its minimum is not below 0. */
Test(metrics, a_histogram_has_its_sum_while_no_value_is_below_0)
{
	const struct dp_agg_part part[2] = {{.what = DP_AGG_LINEAR, .value = "n", .low = 10, .step = 5, .buckets = 1},
	                                    {.what = DP_AGG_SUM | DP_AGG_MIN, .hidden = DP_AGG_SUM | DP_AGG_MIN, .value = "n"}};
	const uint64_t some[3 + DP_AGG_WORDS] = {1, 2, 0, 3, 25, 0, ~(UINT64_C(1) << 63 ^ 1)}, none[3 + DP_AGG_WORDS] = {0},
	                        below[3 + DP_AGG_WORDS] = {1, 0, 0, 1, (uint64_t)-1, 0, ~(UINT64_C(1) << 63 ^ (uint64_t)-1)};
	const struct dp_agg_row row[3] = {{.name = "some", .cells = some, .hits = 3},
	                                  {.name = "none", .cells = none},
	                                  {.name = "below", .cells = below, .hits = 1}};
	const struct dp_aggs_shown a = {.part = part, .nparts = 2, .row = row, .n = 3};
	char *text = written(&a);
	has(text, ",le=\"+Inf\"} 3\ndynprobe_value_sum{probe=\"some\",expr=\"n\"} 25\ndynprobe_value_count{probe=\"some\"");
	has(text, "dynprobe_value_sum{probe=\"none\",expr=\"n\"} 0\n");
	has(text, ",le=\"+Inf\"} 1\ndynprobe_value_count{probe=\"below\",expr=\"n\"} 1\n");
	cr_expect_not(strstr(text, "dynprobe_sum") || strstr(text, "dynprobe_min"), "%s", text);
	free(text);
}

Test(metrics, a_histogram_of_durations_has_its_sum_in_seconds)
{
	const struct dp_agg_part part[2] = {{.what = DP_AGG_DECIMAL, .value = "duration"},
	                                    {.what = DP_AGG_SUM, .hidden = DP_AGG_SUM, .value = "duration"}};
	const uint64_t cells[DP_AGG_DECIMAL_WORDS + DP_AGG_WORDS] = {
	        [28] = 1, [DP_AGG_DECIMAL_WORDS] = 1, [DP_AGG_DECIMAL_WORDS + 1] = 1500000000};
	const struct dp_agg_row row = {.name = "f", .cells = cells, .hits = 1};
	const struct dp_aggs_shown a = {.part = part, .nparts = 2, .row = &row, .n = 1};
	char *text = written(&a);
	has(text, "dynprobe_duration_seconds_sum{probe=\"f\",expr=\"duration\"} 1.500000000\n");
	cr_expect_not(strstr(text, "dynprobe_duration_sum_seconds"), "%s", text);
	free(text);
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;
	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/* Times: from 10 ns to 100 s. What is outside is counted. */
Test(metrics, bounds_of_times_are_round_and_always_the_same)
{
	const struct dp_agg_part part = {.what = DP_AGG_DECIMAL, .value = "duration"};
	uint64_t cells[DP_AGG_DECIMAL_WORDS] = {[0] = 1, [10] = 2, [11] = 4, [29] = 8, [50] = 16};
	const struct dp_agg_row row = {.name = "f", .cells = cells, .hits = 31};
	const struct dp_aggs_shown a = {.part = &part, .nparts = 1, .row = &row, .n = 1};
	char *text = written(&a);
	has(text, "le=\"1e-08\"} 1\n");
	has(text, "le=\"1e-06\"} 1\n");
	has(text, "le=\"2e-06\"} 3\n");
	has(text, "le=\"5e-06\"} 7\n");
	has(text, "le=\"0.0001\"} 7\n");
	has(text, "le=\"2.0\"} 7\n");
	has(text, "le=\"5.0\"} 15\n");
	has(text, "le=\"100.0\"} 15\n");
	has(text, "le=\"+Inf\"} 31\n");
	cr_expect_eq(count(text, "_bucket{"), 32);
	cr_expect_str_eq(text + strlen(text) - 7, "\n# EOF\n");
	free(text);
}

Test(metrics, numbers_up_to_2_40_have_bounds)
{
	const struct dp_agg_part part = {.what = DP_AGG_LOG2, .value = "n"};
	uint64_t cells[DP_AGG_LOG2_WORDS] = {[1] = 2, [50] = 4, [DP_AGG_LOG2_WORDS - 1] = 1}; /* the last: below 0 */
	const struct dp_agg_row row = {.name = "f", .cells = cells, .hits = 7};
	const struct dp_aggs_shown a = {.part = &part, .nparts = 1, .row = &row, .n = 1};
	char *text = written(&a);
	has(text, "le=\"-1\"} 1\n");
	has(text, "le=\"1\"} 3\n");
	has(text, "le=\"1099511627775\"} 3\ndynprobe_value_bucket{probe=\"f\",expr=\"n\",le=\"+Inf\"} 7\n");
	cr_expect_eq(count(text, "_bucket{"), 43);
	free(text);
}

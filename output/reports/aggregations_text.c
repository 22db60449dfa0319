/* SPDX-License-Identifier: MIT */
#include "output/events/frames.h"
#include "output/format/put.h"
#include "output/reports/aggregations.h"

#include <inttypes.h>
#include <string.h>

enum { BAR = 52, CELL = 12 };

/* ---- values ---------------------------------------------------------------------------------------------------------------- */

static void duration(char *text, size_t size, double ns)
{
	const double a = ns < 0 ? -ns : ns;
	if (a < 1e3)
		snprintf(text, size, "%.0fns", ns);
	else if (a < 1e6)
		snprintf(text, size, "%.2fus", ns / 1e3);
	else if (a < 1e9)
		snprintf(text, size, "%.2fms", ns / 1e6);
	else
		snprintf(text, size, "%.2fs", ns / 1e9);
}

static void value(const struct dp_aggs_shown *a, char *text, size_t size, int64_t v)
{
	if (a->ns)
		duration(text, size, (double)v);
	else
		snprintf(text, size, "%" PRId64, v);
}

/* A bound of a bucket; powers of two as 1K, 2M. */
static void bound(const struct dp_aggs_shown *a, char *text, size_t size, int64_t v)
{
	static const char units[] = "KMGTPE";
	int unit = -1;
	if (v == INT64_MIN || v == INT64_MAX) {
		snprintf(text, size, "...");
		return;
	}
	if (a->ns || !(a->what & DP_AGG_LOG2)) {
		value(a, text, size, v);
		return;
	}
	for (; v >= 1024 && v % 1024 == 0; v /= 1024)
		unit++;
	snprintf(text, size, "%" PRId64 "%.1s", v, unit < 0 ? "" : units + unit);
}

/* ---- keys ------------------------------------------------------------------------------------------------------------------ */

static void put_frames(struct dp_buf *b, const struct dp_agg_row *row)
{
	char text[DP_AGG_NAME];
	for (unsigned i = 0; i < dp_agg_depth(row); i++) {
		const struct dp_agg_frame_shown f = dp_agg_frame(row, i, DP_AGG_READABLE, text);
		dp_put_str(b, "                ");
		dp_put_visible(b, f.name, strlen(f.name), 0);
		dp_put_str(b, f.by_pointer ? DP_FRAME_HOW "\n" : "\n");
	}
	if (dp_agg_is_cut(row))
		dp_put_str(b, "                " DP_FRAMES_CUT "\n");
}

static void put_name(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	const char *name = row->title ? row->title : row->name;
	dp_put_visible(b, name, strlen(name), 0);
	if (a->pids)
		dp_buf_printf(b, " (%d)", row->pid);
	if (row->keyed && row->word) {
		dp_put_str(b, "  ");
		dp_put_visible(b, row->word, strlen(row->word), 0);
	} else if (row->keyed && !dp_agg_is_stack(row))
		dp_buf_printf(b, "  %" PRId64, (int64_t)row->key);
}

/* ---- tables ---------------------------------------------------------------------------------------------------------------- */

struct column {
	const char *title;
	unsigned what;
};

static void put_cell(struct dp_buf *b, const char *text)
{
	dp_buf_printf(b, "%*s ", CELL, text);
}

static void put_value(struct dp_buf *b, const struct dp_aggs_shown *a, int64_t v)
{
	char text[48];
	value(a, text, sizeof(text), v);
	put_cell(b, text);
}

static void put_average(struct dp_buf *b, const struct dp_aggs_shown *a, int64_t sum, uint64_t hits)
{
	char text[48];
	const double average = hits ? (double)sum / (double)hits : 0;
	if (a->ns)
		duration(text, sizeof(text), average);
	else
		snprintf(text, sizeof(text), "%.2f", average);
	put_cell(b, text);
}

static void put_head(struct dp_buf *b, const struct dp_aggs_shown *a)
{
	put_cell(b, "hits");
	if (a->what & DP_AGG_SUM)
		put_cell(b, "sum");
	if (a->average)
		put_cell(b, "avg");
	if (a->what & DP_AGG_MIN)
		put_cell(b, "min");
	if (a->what & DP_AGG_MAX)
		put_cell(b, "max");
	dp_put_str(b, a->value ? "of " : "probe");
	if (a->value)
		dp_put_visible(b, a->value, strlen(a->value), 0);
	if (a->by) {
		dp_put_str(b, ", by ");
		dp_put_visible(b, a->by, strlen(a->by), 0);
	}
	dp_put_str(b, "\n");
}

static void put_row(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, row->hits);
	put_cell(b, text);
	if (a->what & DP_AGG_SUM)
		put_value(b, a, (int64_t)row->cells[DP_AGG_WORD_SUM]);
	if (a->average)
		put_average(b, a, (int64_t)row->cells[DP_AGG_WORD_SUM], row->hits);
	if (a->what & DP_AGG_MIN)
		put_value(b, a, dp_agg_min_of(row->cells[DP_AGG_WORD_MIN]));
	if (a->what & DP_AGG_MAX)
		put_value(b, a, dp_agg_max_of(row->cells[DP_AGG_WORD_MAX]));
	put_name(b, a, row);
	dp_put_str(b, "\n");
	put_frames(b, row);
}

/* ---- histograms ------------------------------------------------------------------------------------------------------------ */

/* The buckets ordered by value: the one for values below 0 comes first. */
static unsigned bucket_in_order(const struct dp_aggs_shown *a, unsigned i)
{
	if (!(a->what & DP_AGG_LOG2))
		return i;
	return i ? i - 1 : DP_AGG_LOG2_WORDS - 1;
}

static void put_bucket(struct dp_buf *b, const struct dp_aggs_shown *a, unsigned i, const uint64_t *cells, uint64_t most)
{
	char from[32], to[32], label[80];
	int64_t lo, hi;
	const uint64_t n = cells[i];
	const unsigned length = most ? (unsigned)((double)n * BAR / (double)most) : 0;
	dp_agg_bucket(a, i, &lo, &hi);
	bound(a, from, sizeof(from), lo);
	bound(a, to, sizeof(to), hi);
	if (hi - 1 == lo && !a->ns)
		snprintf(label, sizeof(label), "[%s]", from);
	else
		snprintf(label, sizeof(label), "%s%s, %s)", lo == INT64_MIN ? "(" : "[", from, to);
	dp_buf_printf(b, "%-22s %10" PRIu64 " |%-*.*s|\n", label, n, BAR, (int)length,
	              "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@");
}

/* From the first nonempty bucket to the last. */
static void put_histogram(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	const unsigned n = dp_agg_nbuckets(a);
	unsigned first = n, last = 0;
	uint64_t most = 0;
	for (unsigned k = 0; k < n; k++) {
		const uint64_t cell = row->cells[bucket_in_order(a, k)];
		if (!cell)
			continue;
		first = first == n ? k : first;
		last = k;
		most = cell > most ? cell : most;
	}
	put_name(b, a, row);
	dp_put_str(b, ": ");
	dp_put_visible(b, a->value, strlen(a->value), 0);
	dp_buf_printf(b, ", %" PRIu64 " hit%s\n", row->hits, row->hits == 1 ? "" : "s");
	put_frames(b, row);
	for (unsigned k = first; k <= last && k < n; k++)
		put_bucket(b, a, bucket_in_order(a, k), row->cells, most);
	dp_put_str(b, "\n");
}

/* ---- the whole report ----------------------------------------------------------------------------------------------------- */

void dp_aggs_text(const struct dp_aggs_shown *a, FILE *to)
{
	const bool histogram = a->what & (DP_AGG_LOG2 | DP_AGG_LINEAR);
	size_t shown = 0, silent = 0;
	struct dp_buf b;
	dp_buf_init(&b);
	dp_buf_printf(&b, "%s %.3f s\n", a->delta ? "in the last" : "in", a->seconds);
	if (!histogram)
		put_head(&b, a);
	for (size_t i = 0; i < a->n && (!a->top || shown < a->top); i++) {
		if (!a->row[i].hits) {
			silent++;
			continue;
		}
		shown++;
		if (histogram)
			put_histogram(&b, a, &a->row[i]);
		else
			put_row(&b, a, &a->row[i]);
	}
	if (silent)
		dp_buf_printf(&b, "%*zu row%s without a hit\n", CELL, silent, silent == 1 ? "" : "s");
	if (shown + silent < a->n)
		dp_buf_printf(&b, "%*zu more row%s\n", CELL, a->n - shown - silent, a->n - shown - silent == 1 ? "" : "s");
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}

/* SPDX-License-Identifier: MIT */
#include "output/aggregations/aggregations_internal.h"
#include "output/aggregations/units.h"
#include "output/format/put.h"

#include <inttypes.h>
#include <string.h>

enum { LABEL = 22, COUNT = 10, BAR = 52, BAR_LEAST = 8, BAR_MOST = 160, AROUND = LABEL + COUNT + 5 };

static unsigned bar_of(const struct dp_aggs_shown *a)
{
	if (!a->width)
		return BAR;
	const unsigned room = a->width > AROUND + BAR_LEAST ? a->width - AROUND : BAR_LEAST;
	return room < BAR_MOST ? room : BAR_MOST;
}

struct chart {
	const struct dp_agg_part *part;
	const uint64_t *cells;
	uint64_t most; /* in a bucket */
	unsigned bar;
};

static void label_of(const struct chart *c, unsigned i, char *label, size_t size)
{
	char from[DP_UNITS_TEXT], to[DP_UNITS_TEXT];
	int64_t lo, hi;
	dp_agg_bucket(c->part, i, &lo, &hi);
	dp_units_bound(c->part, from, lo);
	dp_units_bound(c->part, to, hi);
	if (hi - 1 == lo && !dp_agg_is_ns(c->part))
		snprintf(label, size, "[%s]", from);
	else
		snprintf(label, size, "%s%s, %s)", lo == INT64_MIN ? "(" : "[", from, to);
}

static void put_bucket(struct dp_buf *b, const struct chart *c, unsigned i)
{
	char label[2 * DP_UNITS_TEXT + 8], bar[BAR_MOST + 1];
	const uint64_t n = c->cells[i];
	const unsigned length = c->most ? (unsigned)((double)n * c->bar / (double)c->most) : 0;
	label_of(c, i, label, sizeof(label));
	memset(bar, ' ', sizeof(bar));
	memset(bar, '@', length);
	dp_buf_printf(b, "%-*s %*" PRIu64 " |%.*s|\n", LABEL, label, COUNT, n, (int)c->bar, bar);
}

static void put_percentiles(struct dp_buf *b, const struct chart *c)
{
	char text[DP_UNITS_TEXT];
	for (unsigned i = 0; i < DP_AGG_NPERCENTILES; i++) {
		dp_units_percentile(c->part, text, c->cells, DP_AGG_PERCENTILES[i]);
		dp_buf_printf(b, ", p%u ~%s", DP_AGG_PERCENTILES[i], text);
	}
}

static void put_buckets(struct dp_buf *b, struct chart *c)
{
	const unsigned n = dp_agg_part_words(c->part);
	unsigned first = n, last = 0;
	for (unsigned k = 0; k < n; k++) {
		const uint64_t cell = c->cells[dp_agg_bucket_in_order(c->part, k)];
		if (!cell)
			continue;
		first = first == n ? k : first;
		last = k;
		c->most = cell > c->most ? cell : c->most;
	}
	for (unsigned k = first; k <= last && k < n; k++)
		put_bucket(b, c, dp_agg_bucket_in_order(c->part, k));
}

static void put_chart(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row, size_t i)
{
	struct chart c = {.part = &a->part[i], .cells = dp_agg_cells_of(a, row, i), .bar = bar_of(a)};
	dp_aggs_put_name(b, a, row);
	dp_put_str(b, ": ");
	dp_put_visible(b, c.part->value, strlen(c.part->value), 0);
	dp_buf_printf(b, ", %" PRIu64 " hit%s", row->hits, row->hits == 1 ? "" : "s");
	put_percentiles(b, &c);
	dp_put_str(b, " (interpolated)\n");
	dp_aggs_put_frames(b, a, row);
	put_buckets(b, &c);
	dp_put_str(b, "\n");
}

void dp_aggs_put_charts(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	for (size_t i = 0; i < a->nparts; i++)
		if (dp_agg_is_histogram(&a->part[i]))
			put_chart(b, a, row, i);
}

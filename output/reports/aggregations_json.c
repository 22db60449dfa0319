/* SPDX-License-Identifier: MIT */
/* NDJSON (docs/json.md): one line per row. */
#include "output/events/frames.h"
#include "output/format/put.h"
#include "output/reports/aggregations.h"

#include <inttypes.h>
#include <string.h>

static void put_member(struct dp_buf *b, const char *name)
{
	dp_buf_printf(b, ",\"%s\":", name);
}

static void put_key(struct dp_buf *b, const struct dp_agg_row *row)
{
	char text[DP_AGG_NAME];
	if (!row->keyed)
		return;
	if (row->word) {
		put_member(b, "key");
		dp_put_json_str(b, row->word);
		return;
	}
	if (!dp_agg_is_stack(row)) {
		dp_buf_printf(b, ",\"key\":%" PRId64, (int64_t)row->key);
		return;
	}
	put_member(b, "stack");
	for (unsigned i = 0; i < dp_agg_depth(row); i++) {
		const struct dp_agg_frame_shown f = dp_agg_frame(row, i, DP_AGG_SYMBOL, text);
		dp_put_str(b, i ? ",{\"pc\":" : "[{\"pc\":");
		if (f.pc)
			dp_buf_printf(b, "\"0x%" PRIx64 "\"", f.pc);
		else
			dp_put_str(b, "null");
		put_member(b, "symbol");
		dp_put_json_str(b, f.name);
		dp_put_str(b, f.by_pointer ? ",\"by_frame_pointer\":true}" : "}");
	}
	dp_put_str(b, dp_agg_depth(row) ? "]" : "[]");
	if (dp_agg_is_cut(row))
		dp_put_str(b, ",\"cut\":true");
}

static void put_statistics(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	const int64_t sum = (int64_t)row->cells[DP_AGG_WORD_SUM];
	if (a->what & DP_AGG_SUM)
		dp_buf_printf(b, ",\"sum\":%" PRId64, sum);
	if (a->average && row->hits) {
		put_member(b, "avg");
		dp_put_double(b, (double)sum / (double)row->hits, 8);
	}
	if (a->what & DP_AGG_MIN && row->hits)
		dp_buf_printf(b, ",\"min\":%" PRId64, dp_agg_min_of(row->cells[DP_AGG_WORD_MIN]));
	if (a->what & DP_AGG_MAX && row->hits)
		dp_buf_printf(b, ",\"max\":%" PRId64, dp_agg_max_of(row->cells[DP_AGG_WORD_MAX]));
}

/* Only nonempty buckets; an open end is omitted. */
static void put_buckets(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	const unsigned n = dp_agg_nbuckets(a);
	bool first = true;
	put_member(b, "buckets");
	dp_put_str(b, "[");
	for (unsigned i = 0; i < n; i++) {
		int64_t from, to;
		if (!row->cells[i])
			continue;
		dp_agg_bucket(a, i, &from, &to);
		dp_put_str(b, first ? "{" : ",{");
		first = false;
		if (from != INT64_MIN)
			dp_buf_printf(b, "\"from\":%" PRId64 ",", from);
		if (to != INT64_MAX)
			dp_buf_printf(b, "\"to\":%" PRId64 ",", to);
		dp_buf_printf(b, "\"hits\":%" PRIu64 "}", row->cells[i]);
	}
	dp_put_str(b, "]");
}

static void put_row(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	dp_buf_printf(b, "{\"type\":\"answer\",\"final\":%s,\"seconds\":", a->delta ? "false" : "true");
	dp_put_double(b, a->seconds, 8);
	put_member(b, "probe");
	dp_put_json_str(b, row->name);
	if (row->title)
		dp_put_json_member(b, ",", "title", row->title);
	if (row->pid)
		dp_buf_printf(b, ",\"pid\":%d", row->pid);
	else
		dp_buf_printf(b, ",\"pid\":null");
	put_key(b, row);
	if (a->value) {
		put_member(b, "value");
		dp_put_json_str(b, a->value);
		if (a->ns)
			dp_put_str(b, ",\"unit\":\"ns\"");
	}
	dp_buf_printf(b, ",\"hits\":%" PRIu64, row->hits);
	if (a->what & (DP_AGG_LOG2 | DP_AGG_LINEAR))
		put_buckets(b, a, row);
	else if (a->what != DP_AGG_COUNT)
		put_statistics(b, a, row);
	if (row->unpaired)
		dp_buf_printf(b, ",\"unpaired\":%" PRIu64, row->unpaired);
	if (row->crowded)
		dp_buf_printf(b, ",\"crowded\":%" PRIu64, row->crowded);
	dp_put_str(b, "}\n");
}

void dp_aggs_json(const struct dp_aggs_shown *a, FILE *to)
{
	struct dp_buf b;
	dp_buf_init(&b);
	for (size_t i = 0; i < a->n && (!a->top || i < a->top); i++)
		put_row(&b, a, &a->row[i]);
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}

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
	char text[DP_FRAME_TEXT];
	if (!row->keyed)
		return;
	if (row->word) {
		put_member(b, "key");
		dp_put_json_str(b, row->word);
		return;
	}
	if (!row->frames) {
		dp_buf_printf(b, ",\"key\":%" PRId64, (int64_t)row->key);
		return;
	}
	put_member(b, "stack");
	for (unsigned i = 0; i < row->nframes; i++) {
		const uint64_t pc = dp_frame_pc(row->frames[i]);
		dp_frame_describe(row->image, pc, !i, false, text);
		dp_buf_printf(b, "%s{\"pc\":\"0x%" PRIx64 "\",\"symbol\":", i ? "," : "[", pc);
		dp_put_json_str(b, text);
		dp_put_str(b, dp_frame_is_by_pointer(row->frames[i]) ? ",\"by_frame_pointer\":true}" : "}");
	}
	dp_put_str(b, row->nframes ? "]" : "[]");
	if (row->cut)
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

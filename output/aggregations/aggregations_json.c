/* SPDX-License-Identifier: MIT */
/* NDJSON (docs/json.md): one line per row. */
#include "output/aggregations/aggregations_internal.h"
#include "output/events/known_frames.h"
#include "output/format/put.h"

#include <inttypes.h>
#include <string.h>

static void put_member(struct dp_buf *b, const char *name)
{
	dp_buf_printf(b, ",\"%s\":", name);
}

static void put_frames(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	char text[DP_AGG_NAME];
	for (unsigned i = 0; i < dp_agg_depth(row); i++) {
		const struct dp_agg_frame_shown f = dp_agg_frame(row, i, DP_AGG_SYMBOL, text);
		dp_put_str(b, i ? ",{\"pc\":" : "[{\"pc\":");
		if (f.pc)
			dp_buf_printf(b, "\"0x%" PRIx64 "\"", f.pc);
		else
			dp_put_str(b, "null");
		put_member(b, "symbol");
		dp_put_json_str(b, f.name);
		const struct dp_source source = dp_agg_source(a, row, i);
		dp_put_source_json(b, &source);
		dp_put_str(b, f.by_pointer ? ",\"by_frame_pointer\":true}" : "}");
	}
	dp_put_str(b, dp_agg_depth(row) ? "]" : "[]");
}

static void put_word(struct dp_buf *b, const char *word, bool is_null)
{
	if (is_null)
		dp_put_str(b, "null");
	else
		dp_put_json_str(b, word);
}

static void put_keys(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	put_member(b, "keys");
	for (size_t i = 0; i < a->nkeys; i++) {
		const struct dp_key_shown *k = &row->keys[i];
		const struct dp_agg_row one = {.stack = k->stack};
		dp_put_str(b, i ? "," : "{");
		dp_put_json_str(b, a->key[i].text);
		dp_put_str(b, ":");
		if (k->word)
			put_word(b, k->word, k->is_null);
		else if (k->stack)
			put_frames(b, a, &one);
		else
			dp_buf_printf(b, "%" PRId64, k->number);
	}
	dp_put_str(b, "}");
}

static void put_key(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	const bool lone = row->keys && a->nkeys == 1;
	const char *word = lone ? row->keys[0].word : row->word;
	if (row->keys && !lone) {
		put_keys(b, a, row);
		return;
	}
	if (!row->keyed)
		return;
	if (a->by)
		dp_put_json_member(b, ",", "by", a->by);
	if (word) {
		put_member(b, "key");
		put_word(b, word, lone && row->keys[0].is_null);
	} else if (!dp_agg_is_stack(row)) {
		dp_buf_printf(b, ",\"key\":%" PRId64, (int64_t)row->key);
	} else {
		put_member(b, "stack");
		put_frames(b, a, row);
		if (dp_agg_is_cut(row))
			dp_put_str(b, ",\"cut\":true");
	}
}

static void put_statistics(struct dp_buf *b, const struct dp_agg_part *part, const uint64_t *cells)
{
	const uint64_t hits = dp_agg_hits(part, cells);
	const int64_t sum = (int64_t)cells[DP_AGG_WORD_SUM];
	if (part->what & DP_AGG_SUM)
		dp_buf_printf(b, ",\"sum\":%" PRId64, sum);
	if (part->average && hits) {
		put_member(b, "avg");
		dp_put_double(b, (double)sum / (double)hits, 8);
	}
	if (part->what & DP_AGG_MIN && hits)
		dp_buf_printf(b, ",\"min\":%" PRId64, dp_agg_min_of(cells[DP_AGG_WORD_MIN]));
	if (part->what & DP_AGG_MAX && hits)
		dp_buf_printf(b, ",\"max\":%" PRId64, dp_agg_max_of(cells[DP_AGG_WORD_MAX]));
}

/* Only nonempty buckets; an open end is omitted. */
static void put_buckets(struct dp_buf *b, const struct dp_agg_part *part, const uint64_t *cells)
{
	const unsigned n = dp_agg_part_words(part);
	bool first = true;
	put_member(b, "buckets");
	dp_put_str(b, "[");
	for (unsigned i = 0; i < n; i++) {
		int64_t from, to;
		if (!cells[i])
			continue;
		dp_agg_bucket(part, i, &from, &to);
		dp_put_str(b, first ? "{" : ",{");
		first = false;
		if (from != INT64_MIN)
			dp_buf_printf(b, "\"from\":%" PRId64 ",", from);
		if (to != INT64_MAX)
			dp_buf_printf(b, "\"to\":%" PRId64 ",", to);
		dp_buf_printf(b, "\"hits\":%" PRIu64 "}", cells[i]);
	}
	dp_put_str(b, "]");
}

/* Those that lie beyond a linear histogram are left out. */
static void put_percentiles(struct dp_buf *b, const struct dp_agg_part *part, const uint64_t *cells)
{
	char name[8];
	struct dp_percentile p;
	for (unsigned i = 0; i < DP_AGG_NPERCENTILES; i++) {
		if (!dp_agg_percentile(part, cells, DP_AGG_PERCENTILES[i], &p) || p.open)
			continue;
		snprintf(name, sizeof(name), "p%u", DP_AGG_PERCENTILES[i]);
		put_member(b, name);
		dp_put_double(b, p.value, 8);
	}
}

static void put_value(struct dp_buf *b, const struct dp_agg_part *part)
{
	dp_put_str(b, "\"value\":");
	dp_put_json_str(b, part->value);
	if (dp_agg_is_ns(part))
		dp_put_str(b, ",\"unit\":\"ns\"");
}

static void put_result(struct dp_buf *b, const struct dp_agg_part *part, const uint64_t *cells)
{
	if (dp_agg_is_histogram(part)) {
		put_buckets(b, part, cells);
		put_percentiles(b, part, cells);
	} else if (part->what != DP_AGG_COUNT) {
		put_statistics(b, part, cells);
	}
}

static void put_several(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	put_member(b, "aggregations");
	for (size_t i = 0; i < a->nparts; i++) {
		dp_put_str(b, i ? ",{" : "[{");
		put_value(b, &a->part[i]);
		put_result(b, &a->part[i], dp_agg_cells_of(a, row, i));
		dp_put_str(b, "}");
	}
	dp_put_str(b, "]");
}

void dp_aggs_put_json_name(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	dp_put_str(b, "\"probe\":");
	dp_put_json_str(b, row->name);
	if (row->title)
		dp_put_json_member(b, ",", "title", row->title);
	if (row->pid)
		dp_buf_printf(b, ",\"pid\":%d", row->pid);
	else
		dp_buf_printf(b, ",\"pid\":null");
	put_key(b, a, row);
	if (a->nparts == 1 && a->part[0].value) {
		dp_put_str(b, ",");
		put_value(b, &a->part[0]);
	}
}

void dp_aggs_put_json_numbers(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	dp_buf_printf(b, "\"hits\":%" PRIu64, row->hits);
	if (a->rate && a->seconds > 0) {
		put_member(b, "rate");
		dp_put_double(b, (double)row->hits / a->seconds, 8);
	}
	if (a->nparts == 1)
		put_result(b, &a->part[0], row->cells);
	else
		put_several(b, a, row);
}

static void put_row(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	dp_buf_printf(b, "{\"type\":\"answer\",\"final\":%s,\"seconds\":", a->delta ? "false" : "true");
	dp_put_double(b, a->seconds, 8);
	dp_put_str(b, ",");
	dp_aggs_put_json_name(b, a, row);
	dp_put_str(b, ",");
	dp_aggs_put_json_numbers(b, a, row);
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
	dp_aggs_look_up(a);
	for (size_t i = 0; i < a->n && (!a->top || i < a->top); i++)
		put_row(&b, a, &a->row[i]);
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}

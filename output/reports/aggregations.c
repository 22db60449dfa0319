/* SPDX-License-Identifier: MIT */
#include "output/reports/aggregations.h"

#include "output/events/frames.h"
#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>

uint64_t dp_agg_hits(unsigned what, const uint64_t *cells, unsigned words)
{
	uint64_t sum = 0;
	if (!(what & (DP_AGG_LOG2 | DP_AGG_LINEAR)))
		return cells[DP_AGG_WORD_COUNT];
	for (unsigned i = 0; i < words; i++)
		sum += cells[i];
	return sum;
}

int64_t dp_agg_max_of(uint64_t cell)
{
	return (int64_t)(cell ^ UINT64_C(1) << 63);
}

int64_t dp_agg_min_of(uint64_t cell)
{
	return (int64_t)(~cell ^ UINT64_C(1) << 63);
}

unsigned dp_agg_nbuckets(const struct dp_aggs_shown *a)
{
	const struct dp_agg like = {.what = a->what, .buckets = a->buckets};
	return dp_agg_words(&like);
}

static void log2_bucket(unsigned i, int64_t *from, int64_t *to)
{
	if (i == 0) {
		*from = 0;
		*to = 1;
	} else if (i == DP_AGG_LOG2_WORDS - 1) {
		*from = INT64_MIN;
		*to = 0;
	} else {
		*from = (int64_t)(UINT64_C(1) << (i - 1));
		*to = i == 63 ? INT64_MAX : (int64_t)(UINT64_C(1) << i);
	}
}

void dp_agg_bucket(const struct dp_aggs_shown *a, unsigned i, int64_t *from, int64_t *to)
{
	if (a->what & DP_AGG_LOG2) {
		log2_bucket(i, from, to);
		return;
	}
	*from = i ? (int64_t)((uint64_t)a->low + (i - 1) * a->step) : INT64_MIN;
	*to = i <= a->buckets ? (int64_t)((uint64_t)a->low + i * a->step) : INT64_MAX;
}

/* ---- order ----------------------------------------------------------------------------------------------------------------- */

static int descending(int64_t x, int64_t y)
{
	return (x < y) - (x > y);
}

/* Both have hits. */
static int by_value(const struct dp_agg_row *a, const struct dp_agg_row *b, enum dp_aggs_rank rank)
{
	const int64_t x = (int64_t)a->cells[DP_AGG_WORD_SUM], y = (int64_t)b->cells[DP_AGG_WORD_SUM];
	const double p = (double)x / (double)a->hits, q = (double)y / (double)b->hits;
	switch (rank) {
	case DP_RANK_SUM:
		return descending(x, y);
	case DP_RANK_AVERAGE:
		return (p < q) - (p > q);
	case DP_RANK_MIN:
		return descending(dp_agg_min_of(a->cells[DP_AGG_WORD_MIN]), dp_agg_min_of(b->cells[DP_AGG_WORD_MIN]));
	case DP_RANK_MAX:
		return descending(dp_agg_max_of(a->cells[DP_AGG_WORD_MAX]), dp_agg_max_of(b->cells[DP_AGG_WORD_MAX]));
	default:
		return 0;
	}
}

static int in_order(const void *x, const void *y, void *data)
{
	const enum dp_aggs_rank *rank = data;
	const struct dp_agg_row *a = x, *b = y;
	const bool value = *rank != DP_RANK_HITS && a->hits && b->hits;
	int order = value ? by_value(a, b, *rank) : 0;
	order = order ? order : (a->hits < b->hits) - (a->hits > b->hits);
	order = order ? order : strcmp(a->name, b->name);
	return order ? order : (a->cells > b->cells) - (a->cells < b->cells);
}

void dp_aggs_sort(struct dp_agg_row *row, size_t n, enum dp_aggs_rank rank)
{
	qsort_r(row, n, sizeof(*row), in_order, &rank);
}

/* ---- frames ---------------------------------------------------------------------------------------------------------------- */

_Static_assert(DP_AGG_NAME == DP_FRAME_TEXT, "a name is a frame's text");

bool dp_agg_is_stack(const struct dp_agg_row *row)
{
	return row->frames || row->stack;
}

unsigned dp_agg_depth(const struct dp_agg_row *row)
{
	return row->stack ? row->stack->n : row->nframes;
}

bool dp_agg_is_cut(const struct dp_agg_row *row)
{
	return row->stack ? row->stack->cut : row->cut;
}

static const char *name_of(const struct dp_agg_frame *f, enum dp_agg_name name)
{
	return name == DP_AGG_SYMBOL ? f->symbol : name == DP_AGG_READABLE ? f->readable : f->function;
}

struct dp_agg_frame_shown dp_agg_frame(const struct dp_agg_row *row, unsigned i, enum dp_agg_name name, char text[DP_AGG_NAME])
{
	if (row->stack)
		return (struct dp_agg_frame_shown){0, name_of(row->stack->frame[i], name), row->stack->frame[i]->by_pointer};
	const uint64_t pc = dp_frame_pc(row->frames[i]);
	if (name == DP_AGG_FUNCTION)
		dp_frame_function(row->image, pc, !i, text);
	else
		dp_frame_describe(row->image, pc, !i, name == DP_AGG_READABLE, text);
	return (struct dp_agg_frame_shown){pc, text, dp_frame_is_by_pointer(row->frames[i])};
}

/* ---- folded stacks --------------------------------------------------------------------------------------------------------- */

/* Appends the function only: flame graphs sum by function. */
static void put_function(struct dp_buf *b, const struct dp_agg_row *row, unsigned i)
{
	char buf[DP_AGG_NAME], text[DP_AGG_NAME];
	snprintf(text, sizeof(text), "%s", dp_agg_frame(row, i, DP_AGG_FUNCTION, buf).name);
	for (char *c = text; (c = strchr(c, ';'));) /* it separates functions */
		*c = ':';
	dp_put_visible(b, text, strlen(text), 0);
}

/* A stack's width in a flame graph. */
static void put_weight(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	dp_put_str(b, " ");
	if (a->what & DP_AGG_SUM)
		dp_put_signed(b, (int64_t)row->cells[DP_AGG_WORD_SUM]);
	else
		dp_put_dec(b, row->hits);
	dp_put_str(b, "\n");
}

void dp_aggs_folded(const struct dp_aggs_shown *a, FILE *to)
{
	struct dp_buf b;
	dp_buf_init(&b);
	for (size_t k = 0; k < a->n; k++) {
		const struct dp_agg_row *row = &a->row[k];
		if (dp_agg_is_cut(row))
			dp_put_str(&b, DP_FRAMES_CUT ";");
		for (unsigned i = dp_agg_depth(row); i-- > 0;) {
			put_function(&b, row, i);
			dp_put_str(&b, i ? ";" : "");
		}
		if (dp_agg_depth(row))
			put_weight(&b, a, row);
	}
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}

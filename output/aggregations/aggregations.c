/* SPDX-License-Identifier: MIT */
#include "output/aggregations/aggregations.h"

#include "output/events/frames.h"
#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>

static struct dp_agg like(const struct dp_agg_part *part)
{
	return (struct dp_agg){.what = part->what, .buckets = part->buckets};
}

unsigned dp_agg_part_words(const struct dp_agg_part *part)
{
	const struct dp_agg a = like(part);
	return dp_agg_words(&a);
}

bool dp_agg_is_histogram(const struct dp_agg_part *part)
{
	return part->what & DP_AGG_HISTOGRAM;
}

bool dp_agg_is_ns(const struct dp_agg_part *part)
{
	return part->value && !strcmp(part->value, "duration");
}

bool dp_agg_is_statistics(const struct dp_agg_part *part)
{
	return part->what & (DP_AGG_SUM | DP_AGG_MIN | DP_AGG_MAX);
}

const struct dp_agg_part *dp_agg_sum_of(const struct dp_agg_part *part, size_t nparts, size_t histogram)
{
	for (size_t i = 0; i < nparts; i++)
		if (part[i].what & DP_AGG_SUM && !strcmp(part[i].value, part[histogram].value))
			return &part[i];
	return NULL;
}

uint64_t dp_agg_hits(const struct dp_agg_part *part, const uint64_t *cells)
{
	uint64_t sum = 0;
	if (!dp_agg_is_histogram(part))
		return cells[DP_AGG_WORD_COUNT];
	const unsigned words = dp_agg_part_words(part);
	for (unsigned i = 0; i < words; i++)
		sum += cells[i];
	return sum;
}

const uint64_t *dp_agg_cells_of(const struct dp_aggs_shown *a, const struct dp_agg_row *row, size_t part)
{
	const uint64_t *cells = row->cells;
	for (size_t i = 0; i < part; i++)
		cells += dp_agg_part_words(&a->part[i]);
	return cells;
}

int64_t dp_agg_max_of(uint64_t cell)
{
	return (int64_t)(cell ^ UINT64_C(1) << 63);
}

int64_t dp_agg_min_of(uint64_t cell)
{
	return (int64_t)(~cell ^ UINT64_C(1) << 63);
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

static void decimal_bucket(unsigned i, int64_t *from, int64_t *to)
{
	const bool negative = i == DP_AGG_DECIMAL_WORDS - 1;
	*from = negative ? INT64_MIN : dp_decimal_from(i);
	*to = negative ? 0 : i == DP_AGG_DECIMAL_WORDS - 2 ? INT64_MAX : dp_decimal_from(i + 1);
}

void dp_agg_bucket(const struct dp_agg_part *part, unsigned i, int64_t *from, int64_t *to)
{
	if (part->what & DP_AGG_LOG2) {
		log2_bucket(i, from, to);
		return;
	}
	if (part->what & DP_AGG_DECIMAL) {
		decimal_bucket(i, from, to);
		return;
	}
	*from = i ? (int64_t)((uint64_t)part->low + (i - 1) * part->step) : INT64_MIN;
	*to = i <= part->buckets ? (int64_t)((uint64_t)part->low + i * part->step) : INT64_MAX;
}

unsigned dp_agg_bucket_in_order(const struct dp_agg_part *part, unsigned i)
{
	if (part->what & DP_AGG_LINEAR)
		return i;
	return i ? i - 1 : dp_agg_part_words(part) - 1;
}

static struct dp_percentile within(const struct dp_agg_part *part, unsigned bucket, double share)
{
	int64_t from, to;
	dp_agg_bucket(part, bucket, &from, &to);
	if (from == INT64_MIN)
		return (struct dp_percentile){(double)to, -1};
	if (to == INT64_MAX)
		return (struct dp_percentile){(double)from, 1};
	/* Of integers: from is the first, to - 1 the last. */
	return (struct dp_percentile){(double)from + share * (double)(to - 1 - from), 0};
}

bool dp_agg_percentile(const struct dp_agg_part *part, const uint64_t *cells, unsigned percent, struct dp_percentile *ret)
{
	const uint64_t hits = dp_agg_hits(part, cells);
	const double rank = (double)hits * percent / 100;
	const unsigned n = dp_agg_part_words(part);
	uint64_t before = 0;
	for (unsigned k = 0; k < n; k++) {
		const unsigned i = dp_agg_bucket_in_order(part, k);
		if (cells[i] && (double)(before + cells[i]) >= rank) {
			*ret = within(part, i, (rank - (double)before) / (double)cells[i]);
			return true;
		}
		before += cells[i];
	}
	return false;
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

static int by_stack(const struct dp_agg_stack *a, const struct dp_agg_stack *b)
{
	int order = (a->n > b->n) - (a->n < b->n);
	for (unsigned i = 0; !order && i < a->n; i++)
		order = strcmp(a->frame[i]->symbol, b->frame[i]->symbol);
	return order;
}

static int by_keys(const struct dp_agg_row *a, const struct dp_agg_row *b)
{
	int order = 0;
	for (size_t i = 0; a->keys && b->keys && !order && i < a->nkeys; i++) {
		const struct dp_key_shown *x = &a->keys[i], *y = &b->keys[i];
		order = (x->number > y->number) - (x->number < y->number);
		order = !order && x->word && y->word ? strcmp(x->word, y->word) : order;
		order = !order && x->stack && y->stack ? by_stack(x->stack, y->stack) : order;
	}
	return order;
}

static int in_order(const void *x, const void *y, void *data)
{
	const enum dp_aggs_rank *rank = data;
	const struct dp_agg_row *a = x, *b = y;
	const bool value = *rank != DP_RANK_HITS && a->hits && b->hits;
	int order = value ? by_value(a, b, *rank) : 0;
	order = order ? order : (a->hits < b->hits) - (a->hits > b->hits);
	order = order ? order : strcmp(a->name, b->name);
	order = order ? order : by_keys(a, b);
	return order ? order : (a->cells > b->cells) - (a->cells < b->cells);
}

void dp_aggs_sort(struct dp_agg_row *row, size_t n, enum dp_aggs_rank rank)
{
	qsort_r(row, n, sizeof(*row), in_order, &rank);
}

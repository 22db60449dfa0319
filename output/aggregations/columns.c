/* SPDX-License-Identifier: MIT */
#include "output/aggregations/columns.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- which ----------------------------------------------------------------------------------------------------------------- */

struct columns {
	const struct dp_aggs_shown *a;
	struct dp_agg_column *column;
	size_t n;
};

static const char *word_of(const struct dp_aggs_shown *a, enum dp_agg_column_kind kind)
{
	static const char *const word[] = {"hits", "hits/s", "sum", "sum/s", "avg", "min", "max"};
	if (kind == DP_COLUMN_HITS && a->hits_title)
		return a->hits_title;
	if (kind == DP_COLUMN_SUM && a->sum_title)
		return a->sum_title;
	return word[kind];
}

/* Of several aggregations, each column names its value. */
static void add(struct columns *t, enum dp_agg_column_kind kind, size_t part, unsigned percent)
{
	char name[16];
	struct dp_agg_column *c = &t->column[t->n];
	if (t->n == DP_AGG_COLUMNS_MOST)
		return;
	*c = (struct dp_agg_column){.kind = kind, .part = part, .percent = percent};
	if (kind == DP_COLUMN_PERCENTILE)
		snprintf(name, sizeof(name), "~p%u", percent);
	else
		snprintf(name, sizeof(name), "%s", word_of(t->a, kind));
	if (t->a->nparts > 1 && kind != DP_COLUMN_HITS && kind != DP_COLUMN_RATE)
		snprintf(c->title, sizeof(c->title), "%s(%s)", name, t->a->part[part].value);
	else
		snprintf(c->title, sizeof(c->title), "%s", name);
	t->n++;
}

static void add_part(struct columns *t, size_t i)
{
	const struct dp_agg_part *part = &t->a->part[i];
	for (unsigned k = 0; dp_agg_is_histogram(part) && k < DP_AGG_NPERCENTILES; k++)
		add(t, DP_COLUMN_PERCENTILE, i, DP_AGG_PERCENTILES[k]);
	if (dp_agg_is_histogram(part))
		return;
	if (part->what & DP_AGG_SUM)
		add(t, DP_COLUMN_SUM, i, 0);
	if (part->what & DP_AGG_SUM && t->a->rate)
		add(t, DP_COLUMN_SUM_RATE, i, 0);
	if (part->average)
		add(t, DP_COLUMN_AVERAGE, i, 0);
	if (part->what & DP_AGG_MIN)
		add(t, DP_COLUMN_MIN, i, 0);
	if (part->what & DP_AGG_MAX)
		add(t, DP_COLUMN_MAX, i, 0);
}

size_t dp_agg_columns(const struct dp_aggs_shown *a, struct dp_agg_column ret[DP_AGG_COLUMNS_MOST])
{
	struct columns t = {a, ret, 0};
	add(&t, DP_COLUMN_HITS, 0, 0);
	if (a->rate)
		add(&t, DP_COLUMN_RATE, 0, 0);
	for (size_t i = 0; i < a->nparts; i++)
		add_part(&t, i);
	return t.n;
}

/* ---- what is in them ------------------------------------------------------------------------------------------------------- */

static double per_second(const struct dp_aggs_shown *a, double n)
{
	return a->seconds > 0 ? n / a->seconds : 0;
}

static double percentile(const struct dp_agg_part *part, const uint64_t *cells, unsigned percent, bool *known)
{
	struct dp_percentile p = {0};
	*known = dp_agg_percentile(part, cells, percent, &p) && !p.open;
	return p.value;
}

bool dp_agg_column_value(const struct dp_aggs_shown *a, const struct dp_agg_column *c, const struct dp_agg_row *row, double *ret)
{
	const struct dp_agg_part *part = &a->part[c->part];
	const uint64_t *cells = dp_agg_cells_of(a, row, c->part);
	const bool has_sum = c->kind >= DP_COLUMN_SUM && c->kind <= DP_COLUMN_AVERAGE;
	const double sum = has_sum ? (double)(int64_t)cells[DP_AGG_WORD_SUM] : 0;
	bool known = row->hits;
	switch (c->kind) {
	case DP_COLUMN_HITS:
		*ret = (double)row->hits;
		return true;
	case DP_COLUMN_RATE:
		*ret = per_second(a, (double)row->hits);
		return true;
	case DP_COLUMN_SUM:
		*ret = sum;
		return true;
	case DP_COLUMN_SUM_RATE:
		*ret = per_second(a, sum / (dp_agg_is_ns(part) ? 1e9 : 1));
		return true;
	case DP_COLUMN_AVERAGE:
		*ret = row->hits ? sum / (double)row->hits : 0;
		break;
	case DP_COLUMN_MIN:
		*ret = (double)dp_agg_min_of(cells[DP_AGG_WORD_MIN]);
		break;
	case DP_COLUMN_MAX:
		*ret = (double)dp_agg_max_of(cells[DP_AGG_WORD_MAX]);
		break;
	case DP_COLUMN_PERCENTILE:
		*ret = percentile(part, cells, c->percent, &known);
		break;
	}
	return known;
}

void dp_agg_column_text(const struct dp_aggs_shown *a, const struct dp_agg_column *c, const struct dp_agg_row *row,
                        char text[DP_UNITS_TEXT])
{
	const struct dp_agg_part *part = &a->part[c->part];
	const uint64_t *cells = dp_agg_cells_of(a, row, c->part);
	double value;
	dp_agg_column_value(a, c, row, &value);
	switch (c->kind) {
	case DP_COLUMN_HITS:
		snprintf(text, DP_UNITS_TEXT, "%" PRIu64, row->hits);
		break;
	case DP_COLUMN_RATE:
	case DP_COLUMN_SUM_RATE:
		dp_units_rate(text, value);
		break;
	case DP_COLUMN_SUM:
		dp_units_value(part, text, (int64_t)cells[DP_AGG_WORD_SUM]);
		break;
	case DP_COLUMN_AVERAGE:
		dp_units_average(part, text, value);
		break;
	case DP_COLUMN_MIN:
		dp_units_value(part, text, dp_agg_min_of(cells[DP_AGG_WORD_MIN]));
		break;
	case DP_COLUMN_MAX:
		dp_units_value(part, text, dp_agg_max_of(cells[DP_AGG_WORD_MAX]));
		break;
	case DP_COLUMN_PERCENTILE:
		dp_units_percentile(part, text, cells, c->percent);
		break;
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Rows of two periods are one if they have the same name: the periods may be of two traces, even of two builds of the program, so
 * backtraces are compared by their functions, not by their addresses. Periods of different lengths are compared per second.
 */
#include "output/aggregations/compared.h"

#include "output/aggregations/aggregations_internal.h"
#include "output/aggregations/columns.h"
#include "output/format/put.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CELL = 9, CHANGE = 6, BEFORE = 0, AFTER = 1 };
#define SAME_LENGTH 0.02 /* periods that differ by less are of one length */

/* ---- which rows are one ---------------------------------------------------------------------------------------------------- */

struct named {
	char *name;
	const struct dp_agg_row *row;
	int side;
};

struct pair {
	const struct dp_agg_row *row[2]; /* never NULL: the period that has none counted nothing */
	const struct dp_agg_row *shown;
	double change; /* in what the rows are sorted by */
	size_t order;  /* of the names */
};

struct pairs {
	const struct dp_aggs_shown *a[2];
	struct named *named; /* by name, then the one before */
	size_t nnamed;
	struct pair *pair; /* greatest change first */
	size_t n;
	struct dp_agg_row none;
	uint64_t *cells; /* of `none` */
	bool per_second;
};

static void put_functions(struct dp_buf *b, const struct dp_agg_row *row)
{
	char text[DP_AGG_NAME];
	for (unsigned i = 0; dp_agg_is_stack(row) && i < dp_agg_depth(row); i++) {
		dp_put_str(b, "\n");
		dp_put_str(b, dp_agg_frame(row, i, DP_AGG_FUNCTION, text).name);
	}
}

static char *name_of(const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	struct dp_buf b = {0};
	dp_aggs_put_name(&b, a, row);
	put_functions(&b, row);
	for (size_t i = 0; row->keys && i < a->nkeys; i++) {
		const struct dp_agg_row one = {.stack = row->keys[i].stack};
		put_functions(&b, &one);
	}
	char *name = b.failed ? NULL : strdup(dp_buf_str(&b));
	dp_buf_fini(&b);
	return name;
}

static bool name_all(struct pairs *p)
{
	p->named = calloc(p->a[BEFORE]->n + p->a[AFTER]->n + 1, sizeof(*p->named));
	for (int side = BEFORE; p->named && side <= AFTER; side++)
		for (size_t i = 0; i < p->a[side]->n; i++) {
			const struct dp_agg_row *row = &p->a[side]->row[i];
			struct named *n = &p->named[p->nnamed];
			if (!row->hits)
				continue;
			*n = (struct named){name_of(p->a[side], row), row, side};
			if (!n->name)
				return false;
			p->nnamed++;
		}
	return p->named;
}

/* Rows of one name (two functions of one name) stay in the order that they have. */
static int by_name(const void *x, const void *y)
{
	const struct named *a = x, *b = y;
	const int order = strcmp(a->name, b->name);
	if (order)
		return order;
	return a->side != b->side ? a->side - b->side : (a->row > b->row) - (a->row < b->row);
}

/* ---- what changed ---------------------------------------------------------------------------------------------------------- */

/* What a row amounts to: of a histogram, an estimate of the sum. */
static double amount(const struct pairs *p, int side, const struct dp_agg_row *row)
{
	const struct dp_aggs_shown *a = p->a[side];
	const struct dp_agg_part *part = &a->part[0];
	const double length = p->per_second && a->seconds > 0 ? a->seconds : 1;
	struct dp_percentile half = {0};
	if (!row->hits)
		return 0;
	if (dp_agg_is_histogram(part) && dp_agg_percentile(part, row->cells, 50, &half))
		return half.value * (double)row->hits / length;
	if (part->what & DP_AGG_SUM)
		return (double)(int64_t)row->cells[DP_AGG_WORD_SUM] / length;
	if (part->what & DP_AGG_MAX)
		return (double)dp_agg_max_of(row->cells[DP_AGG_WORD_MAX]);
	if (part->what & DP_AGG_MIN)
		return (double)dp_agg_min_of(row->cells[DP_AGG_WORD_MIN]);
	return (double)row->hits / length;
}

static void add_pair(struct pairs *p, const struct dp_agg_row *before, const struct dp_agg_row *after)
{
	struct pair *q = &p->pair[p->n++];
	*q = (struct pair){{before ? before : &p->none, after ? after : &p->none}, after ? after : before, 0, p->n};
	q->change = fabs(amount(p, AFTER, q->row[AFTER]) - amount(p, BEFORE, q->row[BEFORE]));
}

/* The first ones of a name are a pair, then the second ones. */
static void pair_name(struct pairs *p, const struct named *first, size_t n)
{
	size_t before = 0;
	while (before < n && first[before].side == BEFORE)
		before++;
	for (size_t i = 0; i < before || i < n - before; i++)
		add_pair(p, i < before ? first[i].row : NULL, i < n - before ? first[before + i].row : NULL);
}

static int by_change(const void *x, const void *y)
{
	const struct pair *a = x, *b = y;
	if (a->change != b->change)
		return a->change < b->change ? 1 : -1;
	const uint64_t m = a->row[AFTER]->hits, n = b->row[AFTER]->hits;
	if (m != n)
		return m < n ? 1 : -1;
	return (a->order > b->order) - (a->order < b->order);
}

static bool is_one_length(double a, double b)
{
	return fabs(a - b) <= SAME_LENGTH * fmax(a, b);
}

static unsigned words_of(const struct dp_aggs_shown *a)
{
	unsigned words = 0;
	for (size_t i = 0; i < a->nparts; i++)
		words += dp_agg_part_words(&a->part[i]);
	return words;
}

static bool make_pairs(struct pairs *p, const struct dp_compared *c)
{
	*p = (struct pairs){.a = {&c->before.shown, &c->after.shown}};
	p->per_second = !is_one_length(c->before.shown.seconds, c->after.shown.seconds);
	p->cells = calloc(words_of(&c->after.shown) + 1, sizeof(*p->cells));
	p->none.cells = p->cells;
	if (!p->cells || !name_all(p) || !(p->pair = calloc(p->nnamed + 1, sizeof(*p->pair))))
		return false;
	if (p->nnamed)
		qsort(p->named, p->nnamed, sizeof(*p->named), by_name);
	for (size_t i = 0, end; i < p->nnamed; i = end) {
		for (end = i + 1; end < p->nnamed && !strcmp(p->named[i].name, p->named[end].name);)
			end++;
		pair_name(p, &p->named[i], end - i);
	}
	if (p->n)
		qsort(p->pair, p->n, sizeof(*p->pair), by_change);
	return true;
}

static void destroy_pairs(struct pairs *p)
{
	for (size_t i = 0; i < p->nnamed; i++)
		free(p->named[i].name);
	free(p->named);
	free(p->pair);
	free(p->cells);
}

static size_t rows_to_show(const struct pairs *p)
{
	const size_t top = p->a[AFTER]->top;
	return top && top < p->n ? top : p->n;
}

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

/* Of a histogram the middle and the end are enough here. */
static size_t choose_columns(const struct pairs *p, struct dp_agg_column column[DP_AGG_COLUMNS_MOST])
{
	struct dp_aggs_shown a = *p->a[AFTER];
	size_t n = 0;
	a.rate |= p->per_second;
	const size_t all = dp_agg_columns(&a, column);
	for (size_t i = 0; i < all; i++) {
		const bool absolute = column[i].kind == DP_COLUMN_HITS || column[i].kind == DP_COLUMN_SUM;
		if (!(p->per_second && absolute) && column[i].percent != 90)
			column[n++] = column[i];
	}
	return n;
}

static void put_change(struct dp_buf *b, const struct pairs *p, const struct pair *q, const struct dp_agg_column *c)
{
	double before = 0, after = 0;
	char text[32] = "";
	const bool has_before = dp_agg_column_value(p->a[BEFORE], c, q->row[BEFORE], &before) && q->row[BEFORE]->hits;
	const bool has_after = dp_agg_column_value(p->a[AFTER], c, q->row[AFTER], &after) && q->row[AFTER]->hits;
	if (!has_before)
		snprintf(text, sizeof(text), "%s", q->row[BEFORE]->hits ? "" : "new");
	else if (!has_after)
		snprintf(text, sizeof(text), "%s", q->row[AFTER]->hits ? "" : "gone");
	else if (before > 0 && after >= 10 * before)
		snprintf(text, sizeof(text), "x%.0f", after / before);
	else if (before > 0 && fabs(after / before - 1) < 0.005)
		snprintf(text, sizeof(text), "0%%");
	else if (before > 0)
		snprintf(text, sizeof(text), "%+.0f%%", 100 * (after / before - 1));
	dp_buf_printf(b, "%*s ", CHANGE, text);
}

static void put_cell(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_column *c, const struct dp_agg_row *row)
{
	char text[DP_UNITS_TEXT] = "-";
	const bool counted = c->kind == DP_COLUMN_HITS || c->kind == DP_COLUMN_RATE;
	if (row->hits || counted)
		dp_agg_column_text(a, c, row, text);
	dp_buf_printf(b, "%*s ", CELL, text);
}

/* In the middle of its three columns. */
static void put_group(struct dp_buf *b, const struct dp_agg_column *c)
{
	const int group = 2 * CELL + CHANGE + 2;
	struct dp_buf title = {0};
	dp_put_visible(&title, c->title, strlen(c->title), 0);
	const int right = (group + (int)title.len) / 2;
	dp_buf_printf(b, "%*s%*s ", right, dp_buf_str(&title), right < group ? group - right : 0, "");
	dp_buf_fini(&title);
}

static void trim(struct dp_buf *b)
{
	while (b->len && b->data[b->len - 1] == ' ')
		b->len--;
}

static void put_heads(struct dp_buf *b, const struct pairs *p, const struct dp_agg_column *column, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_group(b, &column[i]);
	trim(b);
	dp_put_str(b, "\n");
	for (size_t i = 0; i < n; i++)
		dp_buf_printf(b, "%*s %*s %*s ", CELL, "before", CELL, "after", CHANGE, "change");
	dp_aggs_put_title(b, p->a[AFTER]);
	dp_put_str(b, "\n");
}

static void put_pair(struct dp_buf *b, const struct pairs *p, const struct pair *q, const struct dp_agg_column *column, size_t n)
{
	const struct dp_aggs_shown *a = p->a[q->shown == q->row[AFTER] ? AFTER : BEFORE];
	for (size_t i = 0; i < n; i++) {
		put_cell(b, p->a[BEFORE], &column[i], q->row[BEFORE]);
		put_cell(b, p->a[AFTER], &column[i], q->row[AFTER]);
		put_change(b, p, q, &column[i]);
	}
	dp_aggs_put_name(b, a, q->shown);
	trim(b);
	dp_put_str(b, "\n");
	dp_aggs_put_frames(b, a, q->shown);
}

static void put_period(struct dp_buf *b, const char *word, double seconds, uint64_t begin_ns)
{
	const time_t second = (time_t)(begin_ns / 1000000000);
	char when[32] = "";
	struct tm tm;
	if (localtime_r(&second, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	dp_buf_printf(b, "%s: %.3f s from %s.%03u", word, seconds, when, (unsigned)(begin_ns / 1000000 % 1000));
}

static void put_table(struct dp_buf *b, const struct pairs *p)
{
	struct dp_agg_column column[DP_AGG_COLUMNS_MOST];
	const size_t n = choose_columns(p, column), shown = rows_to_show(p);
	put_heads(b, p, column, n);
	for (size_t i = 0; i < shown; i++)
		put_pair(b, p, &p->pair[i], column, n);
	if (shown < p->n)
		dp_buf_printf(b, "%zu more row%s\n", p->n - shown, p->n - shown == 1 ? "" : "s");
}

bool dp_compared_text(const struct dp_compared *c, FILE *to)
{
	struct pairs p;
	struct dp_buf b = {0};
	bool ok = make_pairs(&p, c);
	if (ok) {
		dp_aggs_look_up(&c->before.shown);
		dp_aggs_look_up(&c->after.shown);
		put_period(&b, "before", c->before.shown.seconds, c->before.begin_ns);
		put_period(&b, "; after", c->after.shown.seconds, c->after.begin_ns);
		dp_put_str(&b, "\n");
		put_table(&b, &p);
		ok = !b.failed;
		fwrite(dp_buf_str(&b), 1, b.len, to);
	}
	dp_buf_fini(&b);
	destroy_pairs(&p);
	return ok;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------ */

static void put_side(struct dp_buf *b, const char *name, const struct dp_aggs_shown *a, uint64_t begin_ns,
                     const struct dp_agg_row *row)
{
	dp_buf_printf(b, ",\"%s\":{\"ts\":%" PRIu64 ",\"seconds\":", name, begin_ns);
	dp_put_double(b, a->seconds, 8);
	dp_put_str(b, ",");
	dp_aggs_put_json_numbers(b, a, row);
	dp_put_str(b, "}");
}

bool dp_compared_json(const struct dp_compared *c, FILE *to)
{
	struct pairs p;
	struct dp_buf b = {0};
	bool ok = make_pairs(&p, c);
	for (size_t i = 0; ok && i < rows_to_show(&p); i++) {
		const struct pair *q = &p.pair[i];
		dp_put_str(&b, "{\"type\":\"comparison\",");
		dp_aggs_put_json_name(&b, p.a[q->shown == q->row[AFTER] ? AFTER : BEFORE], q->shown);
		put_side(&b, "before", p.a[BEFORE], c->before.begin_ns, q->row[BEFORE]);
		put_side(&b, "after", p.a[AFTER], c->after.begin_ns, q->row[AFTER]);
		dp_put_str(&b, "}\n");
	}
	ok &= !b.failed;
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
	destroy_pairs(&p);
	return ok;
}

/* ---- a period of a run ----------------------------------------------------------------------------------------------------- */

void dp_compared_kept_fini(struct dp_compared_kept *k)
{
	free(k->row);
	free(k->cells);
	*k = (struct dp_compared_kept){.row = NULL};
}

bool dp_compared_keep(struct dp_compared_kept *k, const struct dp_aggs_shown *a, uint64_t begin_ns)
{
	const unsigned words = words_of(a);
	dp_compared_kept_fini(k);
	k->row = calloc(a->n + 1, sizeof(*k->row));
	k->cells = calloc(a->n * words + 1, sizeof(*k->cells));
	if (!k->row || !k->cells) {
		dp_compared_kept_fini(k);
		return false;
	}
	for (size_t i = 0; i < a->n; i++) {
		k->row[i] = a->row[i];
		k->row[i].comm = NULL; /* its process may end */
		k->row[i].cells = memcpy(k->cells + i * words, a->row[i].cells, words * sizeof(*k->cells));
	}
	k->shown = *a;
	k->shown.row = k->row;
	k->begin_ns = begin_ns;
	return true;
}

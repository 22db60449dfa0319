/* SPDX-License-Identifier: MIT */
#include "output/aggregations/aggregations_internal.h"
#include "output/aggregations/columns.h"
#include "output/aggregations/units.h"
#include "output/events/known_frames.h"
#include "output/format/put.h"

#include <inttypes.h>
#include <string.h>

enum { CELL = 12 };

/* ---- keys ------------------------------------------------------------------------------------------------------------------ */

static const char margin[] = "                ";

static void put_frame(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row, unsigned i)
{
	char text[DP_AGG_NAME];
	const struct dp_agg_frame_shown f = dp_agg_frame(row, i, DP_AGG_READABLE, text);
	const struct dp_source source = dp_agg_source(a, row, i);
	for (size_t k = 0; k + 1 < source.n; k++) {
		dp_put_str(b, margin);
		dp_put_source(b, &source, k);
		dp_put_str(b, "\n");
	}
	dp_put_str(b, margin);
	dp_put_visible(b, f.name, strlen(f.name), 0);
	if (source.n)
		dp_put_source(b, &source, source.n - 1);
	dp_put_str(b, f.by_pointer ? DP_FRAME_HOW "\n" : "\n");
}

static void put_stack(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	for (unsigned i = 0; i < dp_agg_depth(row); i++)
		put_frame(b, a, row, i);
	if (!dp_agg_is_cut(row))
		return;
	dp_put_str(b, margin);
	dp_put_str(b, DP_FRAMES_CUT "\n");
}

void dp_aggs_put_frames(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	put_stack(b, a, row);
	for (size_t i = 0; row->keys && i < row->nkeys; i++) {
		const struct dp_agg_row one = {.stack = row->keys[i].stack};
		put_stack(b, a, &one);
	}
}

/* Frames are lines of their own. */
static void put_key(struct dp_buf *b, const struct dp_key_shown *k)
{
	if (k->word)
		dp_put_visible(b, k->word, strlen(k->word), 0);
	else if (!k->stack)
		dp_buf_printf(b, "%" PRId64, k->number);
}

static void put_probe(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	const char *name = row->title ? row->title : row->name;
	if (!a->nameless)
		dp_put_visible(b, name, strlen(name), 0);
	if (a->pids)
		dp_buf_printf(b, " (%d)", row->pid);
}

void dp_aggs_put_name(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	const struct dp_key_shown lone = {.number = (int64_t)row->key, .word = row->word};
	const char *between = a->nameless ? "" : "  ";
	put_probe(b, a, row);
	for (size_t i = 0; row->keys && i < a->nkeys; i++) {
		dp_put_str(b, row->keys[i].stack ? "" : between);
		put_key(b, &row->keys[i]);
	}
	if (row->keys || !row->keyed || (!row->word && dp_agg_is_stack(row)))
		return;
	dp_put_str(b, between);
	put_key(b, &lone);
}

/* ---- tables ---------------------------------------------------------------------------------------------------------------- */

struct table {
	const struct dp_aggs_shown *a;
	struct dp_agg_column column[DP_AGG_COLUMNS_MOST];
	size_t n;
	unsigned name_width, key_width[DP_KEYS_MOST]; /* of several keys, which are columns; a key of frames has no width */
};

/* ---- several keys: a column for each --------------------------------------------------------------------------------------- */

/* Columns of a terminal; no text here has characters without a width. */
static unsigned columns_of(const struct dp_buf *b)
{
	unsigned n = 0;
	for (size_t i = 0; i < b->len; i++)
		n += (b->data[i] & 0xc0) != 0x80;
	return n;
}

/* Above the probes' names. */
static void put_name_head(struct dp_buf *b, const struct dp_aggs_shown *a)
{
	const char *value = a->nparts == 1 ? a->part[0].value : NULL;
	dp_put_str(b, value ? "of " : "probe");
	if (value)
		dp_put_visible(b, value, strlen(value), 0);
}

/* The text in column `key`, or that of the names (-1), of a row; NULL: of the head. */
static void put_field(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row, int key)
{
	if (key < 0 && row)
		put_probe(b, a, row);
	else if (key < 0)
		put_name_head(b, a);
	else if (row && row->keys)
		put_key(b, &row->keys[key]);
	else if (!row)
		dp_put_visible(b, a->key[key].text, strlen(a->key[key].text), 0);
}

static void put_fields(struct dp_buf *b, const struct table *t, const struct dp_agg_row *row)
{
	unsigned gap = 0;
	for (int i = -1; i < (int)t->a->nkeys; i++) {
		struct dp_buf field = {0};
		const unsigned width = i < 0 ? t->name_width : t->key_width[i];
		if (!width)
			continue;
		put_field(&field, t->a, row, i);
		for (; gap; gap--)
			dp_put_str(b, " ");
		dp_buf_put(b, field.data, field.len);
		const unsigned used = columns_of(&field);
		gap = 2 + (width > used ? width - used : 0);
		b->failed |= field.failed;
		dp_buf_fini(&field);
	}
}

static bool has_key_columns(const struct dp_aggs_shown *a)
{
	return a->nkeys > 1 && !a->nameless;
}

static void measure_field(const struct table *t, const struct dp_agg_row *row, int key, unsigned *width)
{
	struct dp_buf field = {0};
	put_field(&field, t->a, row, key);
	const unsigned used = columns_of(&field);
	*width = used > *width ? used : *width;
	dp_buf_fini(&field);
}

static void measure(struct table *t)
{
	const struct dp_aggs_shown *a = t->a;
	for (int key = -1; has_key_columns(a) && key < (int)a->nkeys; key++) {
		unsigned *width = key < 0 ? &t->name_width : &t->key_width[key];
		if (key >= 0 && a->key[key].kind == DP_KEY_STACK)
			continue;
		measure_field(t, NULL, key, width);
		for (size_t i = 0; i < a->n && (!a->top || i < a->top); i++)
			if (a->row[i].hits)
				measure_field(t, &a->row[i], key, width);
	}
}

static void make_table(struct table *t, const struct dp_aggs_shown *a)
{
	*t = (struct table){.a = a};
	measure(t);
	t->n = dp_agg_columns(a, t->column);
}

static int width_of(const struct dp_agg_column *c)
{
	const int n = (int)strlen(c->title);
	return n > CELL ? n : CELL;
}

static void put_cell(struct dp_buf *b, const struct table *t, const struct dp_agg_column *c, const struct dp_agg_row *row)
{
	char text[DP_UNITS_TEXT];
	dp_agg_column_text(t->a, c, row, text);
	dp_buf_printf(b, "%*s ", width_of(c), text);
}

void dp_aggs_put_title(struct dp_buf *b, const struct dp_aggs_shown *a)
{
	if (!a->nameless)
		put_name_head(b, a);
	if (!a->by)
		return;
	dp_put_str(b, a->nameless ? "by " : ", by ");
	dp_put_visible(b, a->by, strlen(a->by), 0);
}

static void put_head(struct dp_buf *b, const struct table *t)
{
	const struct dp_aggs_shown *a = t->a;
	for (size_t i = 0; i < t->n; i++) {
		for (int k = (int)strlen(t->column[i].title); k < CELL; k++)
			dp_put_str(b, " ");
		dp_put_visible(b, t->column[i].title, strlen(t->column[i].title), 0);
		dp_put_str(b, " ");
	}
	if (has_key_columns(a))
		put_fields(b, t, NULL);
	else
		dp_aggs_put_title(b, a);
	dp_put_str(b, "\n");
}

static void put_row(struct dp_buf *b, const struct table *t, const struct dp_agg_row *row)
{
	for (size_t i = 0; i < t->n; i++)
		put_cell(b, t, &t->column[i], row);
	if (has_key_columns(t->a))
		put_fields(b, t, row);
	else
		dp_aggs_put_name(b, t->a, row);
	while (b->len && b->data[b->len - 1] == ' ') /* frames that have no name above them */
		b->len--;
	dp_put_str(b, "\n");
	dp_aggs_put_frames(b, t->a, row);
}

/* ---- the whole report ----------------------------------------------------------------------------------------------------- */

struct counted { /* rows */
	size_t shown, silent, more;
};

static struct counted count(const struct dp_aggs_shown *a)
{
	struct counted c = {0};
	for (size_t i = 0; i < a->n; i++)
		if (!a->row[i].hits)
			c.silent++;
		else if (!a->top || c.shown < a->top)
			c.shown++;
		else
			c.more++;
	return c;
}

static bool has_histograms(const struct dp_aggs_shown *a)
{
	for (size_t i = 0; i < a->nparts; i++)
		if (dp_agg_is_histogram(&a->part[i]))
			return true;
	return false;
}

static void put_rows(struct dp_buf *b, const struct dp_aggs_shown *a, const struct table *t)
{
	size_t shown = 0;
	for (size_t i = 0; i < a->n && (!a->top || shown < a->top); i++) {
		if (!a->row[i].hits)
			continue;
		shown++;
		if (t)
			put_row(b, t, &a->row[i]);
		else
			dp_aggs_put_charts(b, a, &a->row[i]);
	}
}

static void put_left_out(struct dp_buf *b, const struct counted *c)
{
	if (c->silent)
		dp_buf_printf(b, "%*zu row%s without a hit\n", CELL, c->silent, c->silent == 1 ? "" : "s");
	if (c->more)
		dp_buf_printf(b, "%*zu more row%s\n", CELL, c->more, c->more == 1 ? "" : "s");
}

void dp_aggs_text(const struct dp_aggs_shown *a, FILE *to)
{
	struct table t;
	const bool charts = has_histograms(a);
	const struct counted c = count(a);
	struct dp_buf b;
	dp_buf_init(&b);
	make_table(&t, a);
	dp_aggs_look_up(a);
	dp_buf_printf(&b, "%s %.3f s\n", a->delta ? "in the last" : "in", a->seconds);
	if (!charts || a->nparts > 1 || c.shown > 1 || a->rate) {
		put_head(&b, &t);
		put_rows(&b, a, &t);
		dp_put_str(&b, charts ? "\n" : "");
	}
	if (charts)
		put_rows(&b, a, NULL);
	put_left_out(&b, &c);
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}

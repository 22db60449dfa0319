/* SPDX-License-Identifier: MIT */
/* Backtraces as keys: their frames, with source lines, and folded stacks for flame graphs. */
#include "output/aggregations/aggregations.h"
#include "base/text_hash.h"
#include "output/events/frames.h"
#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>

#define DELTA_NS UINT64_C(100000000) /* waited for source lines of a table that another one follows */

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

/* ---- source lines ---------------------------------------------------------------------------------------------------------- */

static const struct dp_source_asked *ask(const struct dp_aggs_shown *a, const struct dp_agg_row *row, unsigned i)
{
	struct dp_source_at at;
	if (row->stack)
		return row->stack->frame[i]->at.path ? dp_source_lines_ask(a->sources, &row->stack->frame[i]->at) : NULL;
	return dp_source_at(row->image, dp_frame_pc(row->frames[i]), !i, &at) ? dp_source_lines_ask(a->sources, &at) : NULL;
}

/* Is any of them not known yet? */
static bool ask_stack(const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	bool any = false;
	for (unsigned i = 0; dp_agg_is_stack(row) && i < dp_agg_depth(row); i++)
		any |= !dp_source_is_known(ask(a, row, i));
	return any;
}

void dp_aggs_look_up(const struct dp_aggs_shown *a)
{
	bool any = false;
	for (size_t k = 0; a->sources && k < a->n && (!a->top || k < a->top); k++) {
		any |= ask_stack(a, &a->row[k]);
		for (size_t i = 0; a->row[k].keys && i < a->nkeys; i++) {
			const struct dp_agg_row one = {.stack = a->row[k].keys[i].stack};
			any |= ask_stack(a, &one);
		}
	}
	if (any && a->delta)
		dp_source_lines_wait(a->sources, DELTA_NS);
	else if (any)
		dp_source_lines_finish(a->sources);
}

struct dp_source dp_agg_source(const struct dp_aggs_shown *a, const struct dp_agg_row *row, unsigned i)
{
	return a->sources ? dp_source_of(ask(a, row, i)) : (struct dp_source){0};
}

/* ---- folded stacks --------------------------------------------------------------------------------------------------------- */

struct folded { /* stacks of the same functions */
	int64_t weight;
	UT_hash_handle hh;
	char text[];
};

static void put_function(struct dp_buf *b, const char *name)
{
	for (const char *end; *name; name = *end ? end + 1 : end) {
		end = strchrnul(name, ';'); /* it separates functions */
		dp_put_visible(b, name, (size_t)(end - name), 0);
		dp_put_str(b, *end ? ":" : "");
	}
}

/* Functions only, outermost first: flame graphs sum by function. Inlined ones are functions, too. */
static void put_frame(struct dp_buf *b, const struct dp_aggs_shown *a, const struct dp_agg_row *row, unsigned i)
{
	char text[DP_AGG_NAME];
	const struct dp_source source = dp_agg_source(a, row, i);
	put_function(b, dp_agg_frame(row, i, DP_AGG_FUNCTION, text).name);
	for (size_t k = source.n; k-- > 1;) {
		dp_put_str(b, ";");
		put_function(b, source.frame[k - 1].function);
	}
}

/* A stack's width in a flame graph. */
static int64_t weight_of(const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	return a->part[0].what & DP_AGG_SUM ? (int64_t)row->cells[DP_AGG_WORD_SUM] : (int64_t)row->hits;
}

static bool add(struct folded **all, const struct dp_buf *text, int64_t weight)
{
	struct folded *f;
	HASH_FIND(hh, *all, text->data, text->len, f);
	if (f) {
		f->weight += weight;
		return true;
	}
	const unsigned before = HASH_COUNT(*all);
	if (text->failed || !(f = calloc(1, sizeof(*f) + text->len + 1)))
		return false;
	memcpy(f->text, text->data, text->len);
	f->weight = weight;
	HASH_ADD_KEYPTR(hh, *all, f->text, text->len, f);
	if (HASH_COUNT(*all) != before)
		return true;
	free(f);
	return false;
}

static void write_folded(struct folded *all, FILE *to)
{
	struct folded *f, *next;
	HASH_ITER(hh, all, f, next)
	{
		fprintf(to, "%s %lld\n", f->text, (long long)f->weight);
		HASH_DEL(all, f);
		free(f);
	}
}

void dp_aggs_folded(const struct dp_aggs_shown *a, FILE *to)
{
	struct folded *all = NULL;
	struct dp_buf b;
	dp_buf_init(&b);
	dp_aggs_look_up(a);
	for (size_t k = 0; k < a->n; k++) {
		const struct dp_agg_row *row = &a->row[k];
		b.len = 0;
		dp_put_str(&b, dp_agg_is_cut(row) ? DP_FRAMES_CUT ";" : "");
		for (unsigned i = dp_agg_depth(row); i-- > 0;) {
			put_frame(&b, a, row, i);
			dp_put_str(&b, i ? ";" : "");
		}
		if (dp_agg_depth(row) && !add(&all, &b, weight_of(a, row)))
			fprintf(to, "%s %lld\n", dp_buf_str(&b), (long long)weight_of(a, row));
	}
	write_folded(all, to);
	dp_buf_fini(&b);
}

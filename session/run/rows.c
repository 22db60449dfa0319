/* SPDX-License-Identifier: MIT */
/*
 * Makes rows from cells: sums those of all threads and processes, joins those of a function's exits, subtracts the values at the
 * end of the last interval, and sorts, greatest first. Backtraces are rows of one process: their frames are addresses in it. With
 * --by pid, comm or exe a row is the sum of the processes that have it in common, and stands under the first one's number.
 */
#include "session/run/rows.h"

#include "output/events/frames.h"
#include "session/process/session_aggs.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_NS UINT64_C(100000000)

struct row { /* one key of one probe */
	size_t session; /* whose backtrace it is; the first of its group; otherwise 0 */
	size_t probe;
	bool keyed;
	uint64_t key;
	unsigned nframes;
	uint64_t *words; /* the cells, then the frames; owned */
	uint64_t unpaired, crowded;
};

struct dp_rows {
	struct row *row, *before; /* sorted; now, and at the end of the last interval */
	size_t n, capacity, nbefore;
	struct dp_cells_want want;
	uint64_t looked_ns, shown_ns;
	bool failed;
	/* The rows for display: */
	struct dp_agg_row *shown;
	uint64_t *cells;
};

struct target { /* the target whose keys are being read */
	struct dp_run *run;
	struct dp_rows *a;
	size_t session, group;
};

/* ---- rows ------------------------------------------------------------------------------------------------------------------ */

static void rows_free(struct row *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(row[i].words);
	free(row);
}

static void clear(struct dp_rows *a)
{
	rows_free(a->row, a->n);
	a->row = NULL;
	a->n = a->capacity = 0;
}

/* A row with cells of 0; NULL if out of memory. */
static struct row *add_row(struct dp_rows *a, const struct row *like, const uint64_t *frames)
{
	if (a->n == a->capacity) {
		const size_t capacity = a->capacity ? 2 * a->capacity : 64;
		struct row *grown = realloc(a->row, capacity * sizeof(*grown));
		if (!grown)
			return NULL;
		a->row = grown;
		a->capacity = capacity;
	}
	struct row *row = &a->row[a->n];
	*row = *like;
	row->words = calloc(a->want.words + like->nframes + 1, sizeof(*row->words));
	if (!row->words)
		return NULL;
	memcpy(row->words + a->want.words, frames ? frames : row->words, like->nframes * sizeof(*frames));
	a->n++;
	return row;
}

static int by_number(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

static int compare(const struct row *x, const struct row *y, unsigned words)
{
	int order = by_number(x->session, y->session);
	order = order ? order : by_number(x->probe, y->probe);
	order = order ? order : by_number(x->keyed, y->keyed);
	order = order ? order : by_number(x->key, y->key);
	order = order ? order : by_number(x->nframes, y->nframes);
	for (unsigned i = words; !order && i < words + x->nframes; i++)
		order = by_number(x->words[i], y->words[i]);
	return order;
}

static int in_order(const void *x, const void *y, void *data)
{
	return compare(x, y, ((const struct dp_rows *)data)->want.words);
}

/* Joins neighbours with the same key. */
static void merge(struct dp_rows *a)
{
	size_t kept = 0;
	qsort_r(a->row, a->n, sizeof(*a->row), in_order, a);
	for (size_t i = 0; i < a->n; i++) {
		struct row *last = kept ? &a->row[kept - 1] : NULL;
		if (!last || compare(last, &a->row[i], a->want.words)) {
			a->row[kept++] = a->row[i];
			continue;
		}
		for (unsigned w = 0; w < a->want.words; w++)
			dp_cells_add(&a->want, last->words, w, a->row[i].words[w]);
		last->unpaired += a->row[i].unpaired;
		last->crowded += a->row[i].crowded;
		free(a->row[i].words);
	}
	a->n = kept;
}

/* ---- groups of processes --------------------------------------------------------------------------------------------------- */

static const char *group_name(const struct dp_session *s, enum dp_aggs_group by)
{
	return by == DP_GROUP_COMM ? dp_target_comm(s->target) : dp_module_path(dp_image_module(dp_target_image(s->target), 0));
}

/* The first process of the group that process k belongs to. */
static size_t group_of(const struct dp_run *run, size_t k)
{
	const enum dp_aggs_group by = dp_aggs_grouped(run->trace);
	if (by == DP_GROUP_NONE || by == DP_GROUP_PID)
		return by ? k : 0;
	for (size_t i = 0; i < k; i++)
		if (!strcmp(group_name(run->session[i], by), group_name(run->session[k], by)))
			return i;
	return k;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static void read_probe(struct dp_run *run, struct dp_rows *a, const struct target *t, unsigned i)
{
	struct dp_session *s = run->session[t->session];
	struct dp_agg_loss loss;
	const struct row like = {.session = t->group, .probe = dp_aggs_row(run->trace, i)};
	struct row *row = s->place[i].placed ? add_row(a, &like, NULL) : NULL;
	if (!s->place[i].placed)
		return;
	if (!row) {
		a->failed = true;
		return;
	}
	dp_target_cells(s->target, i, row->words);
	dp_target_agg_loss(s->target, i, &loss);
	row->unpaired = loss.unpaired;
	row->crowded = loss.crowded;
	dp_session_aggs_loss(s, i);
	s->place[i].recorded = dp_agg_hits(run->trace->asked.what, row->words, a->want.words);
}

static bool on_key(const struct dp_key_cells *key, void *data)
{
	const struct target *t = data;
	const struct dp_run *run = t->run;
	const struct row like = {.session = t->a->want.stack ? t->session : 0,
	                         .probe = dp_aggs_row(run->trace, key->probe),
	                         .keyed = true,
	                         .key = key->key,
	                         .nframes = key->nframes};
	struct row *row = add_row(t->a, &like, key->frames);
	if (!row) {
		t->a->failed = true;
		return false;
	}
	memcpy(row->words, key->cells, t->a->want.words * sizeof(*row->words));
	run->session[t->session]->place[key->probe].recorded +=
	        dp_agg_hits(run->trace->asked.what, row->words, t->a->want.words);
	return true;
}

static void look(struct dp_run *run, struct dp_rows *a)
{
	clear(a);
	run->recorded = 0;
	for (size_t k = 0; k < run->nsessions; k++) {
		struct target target = {run, a, k, group_of(run, k)};
		if (!run->session[k]->answers)
			continue;
		a->want = run->session[k]->answers->want;
		for (unsigned i = 0; i < run->trace->nprobes; i++)
			read_probe(run, a, &target, i);
		if (a->want.keys)
			dp_target_keys(run->session[k]->target, on_key, &target);
		for (unsigned i = 0; i < run->trace->nprobes; i++)
			run->recorded += run->session[k]->place[i].recorded;
	}
	merge(a);
}

/* ---- showing --------------------------------------------------------------------------------------------------------------- */

/* Both are in the same order; the search continues at *old. */
static void take_off(const struct dp_rows *a, const struct row *row, size_t *old, uint64_t *cells)
{
	while (*old < a->nbefore && compare(&a->before[*old], row, a->want.words) < 0)
		++*old;
	if (*old == a->nbefore || compare(&a->before[*old], row, a->want.words))
		return;
	for (unsigned i = 0; i < a->want.greatest; i++)
		cells[i] -= a->before[*old].words[i];
}

static struct dp_agg_row shown_row(struct dp_run *run, const struct dp_rows *a, const struct row *row, uint64_t *cells)
{
	const struct dp_session *s = run->session[row->session];
	const struct dp_probe *p = &run->trace->probe[row->probe];
	const uint64_t *frames = a->want.stack && row->keyed ? row->words + a->want.words : NULL;
	struct dp_image *image = dp_target_image(s->target);
	const enum dp_aggs_group by = dp_aggs_grouped(run->trace);
	const pid_t pid = dp_target_pid(s->target);
	return (struct dp_agg_row){
	        .name = p->title ? p->title : p->name,
	        .pid = frames || by == DP_GROUP_PID || (run->nsessions == 1 && !run->trace->follow) ? pid : 0,
	        .keyed = row->keyed || by,
	        .key = by == DP_GROUP_PID ? (uint64_t)pid : row->key,
	        .word = by == DP_GROUP_COMM || by == DP_GROUP_EXE ? group_name(s, by) : NULL,
	        .frames = frames,
	        .nframes = row->nframes,
	        .cut = frames && row->nframes && dp_frames_cut(image, frames[row->nframes - 1], row->nframes, a->want.stack - 1),
	        .image = image,
	        .cells = cells,
	        .hits = dp_agg_hits(run->trace->asked.what, cells, a->want.words),
	        .unpaired = row->unpaired,
	        .crowded = row->crowded,
	};
}

static void forget_shown(struct dp_rows *a)
{
	free(a->shown);
	free(a->cells);
	a->shown = NULL;
	a->cells = NULL;
}

bool dp_rows_shown(struct dp_run *run, bool delta, struct dp_aggs_shown *ret)
{
	struct dp_rows *a = run->rows;
	const struct dp_asked *asked = &run->trace->asked;
	const uint64_t now = run->clear_ns ? run->clear_ns : dp_now_ns(), since = delta ? a->shown_ns : run->armed_ns;
	size_t n = 0, old = 0;
	forget_shown(a);
	a->shown = calloc(a->n + 1, sizeof(*a->shown));
	a->cells = calloc(a->n * a->want.words + 1, sizeof(*a->cells));
	if (!a->shown || !a->cells)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		uint64_t *own = a->cells + n * a->want.words;
		if (a->want.keys && !a->row[i].keyed)
			continue;
		memcpy(own, a->row[i].words, a->want.words * sizeof(*own));
		if (delta)
			take_off(a, &a->row[i], &old, own);
		a->shown[n++] = shown_row(run, a, &a->row[i], own);
	}
	dp_aggs_sort(a->shown, n, asked->rank);
	*ret = (struct dp_aggs_shown){
	        .what = asked->what,
	        .average = asked->average,
	        .value = asked->value,
	        .by = asked->by,
	        .ns = asked->value && !strcmp(asked->value, "duration"),
	        .pids = run->nsessions > 1 && a->want.stack,
	        .delta = delta,
	        .low = asked->low,
	        .step = asked->step,
	        .buckets = asked->buckets,
	        .top = asked->top,
	        .seconds = (double)(now - since) / 1e9,
	        .row = a->shown,
	        .n = n,
	};
	return true;
}

static struct dp_rows *state(struct dp_run *run)
{
	if (!run->trace->asked.what)
		return NULL;
	if (!run->rows) {
		run->rows = calloc(1, sizeof(*run->rows));
		if (run->rows)
			run->rows->shown_ns = run->armed_ns;
	}
	return run->rows;
}

bool dp_rows_round(struct dp_run *run)
{
	struct dp_rows *a = state(run);
	const uint64_t now = dp_now_ns(), interval = run->trace->asked.interval_ns;
	const bool due = a && interval && now - a->shown_ns >= interval;
	if (!a || (!due && !run->trace->hits && now - a->looked_ns < LOOK_NS))
		return false;
	look(run, a);
	a->looked_ns = now;
	return due;
}

void dp_rows_next(struct dp_run *run)
{
	struct dp_rows *a = run->rows;
	rows_free(a->before, a->nbefore);
	a->before = dp_take(a->row, NULL);
	a->nbefore = dp_take(a->n, 0);
	a->capacity = 0;
	a->shown_ns = a->looked_ns;
}

bool dp_rows_final(struct dp_run *run, bool *failed)
{
	struct dp_rows *a = state(run);
	if (a)
		look(run, a);
	*failed = a && a->failed;
	return a;
}

void dp_rows_fini(struct dp_run *run)
{
	if (!run->rows)
		return;
	clear(run->rows);
	rows_free(run->rows->before, run->rows->nbefore);
	forget_shown(run->rows);
	free(run->rows);
	run->rows = NULL;
}

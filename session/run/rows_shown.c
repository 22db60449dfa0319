/* SPDX-License-Identifier: MIT */
#include "output/events/frames.h"
#include "session/process/session_aggs.h"
#include "session/run/rows_internal.h"

#include <stdlib.h>
#include <string.h>

/*
 * Both are in the same order; the search continues at *old. Of a lone histogram, a hit that was read as a block's last one is in
 * no cell while its thread is adding it: it stays counted. Other cells are as they are: a sum may fall.
 */
static void take_off(const struct dp_rows *a, const struct dp_row *row, size_t *old, bool delta, uint64_t *cells)
{
	while (*old < a->nbefore && dp_rows_compare(&a->before[*old], row, a->want.words) < 0)
		++*old;
	if (*old == a->nbefore || dp_rows_compare(&a->before[*old], row, a->want.words))
		return;
	for (unsigned i = 0; i < a->want.words; i++) {
		if (dp_cells_is_extreme(&a->want, i))
			continue;
		const uint64_t before = a->before[*old].words[i];
		if (a->want.pending && row->words[i] < before)
			row->words[i] = before;
		cells[i] = delta ? row->words[i] - before : row->words[i];
	}
}

static struct dp_image *image_of(const struct dp_run *run, pid_t pid)
{
	for (size_t k = 0; k < run->nsessions; k++)
		if (dp_target_pid(run->session[k]->target) == pid)
			return dp_target_image(run->session[k]->target);
	return NULL;
}

/* Processes that come and go have no name here: it would be lost at their end, and the row would be another one. */
static const char *comm_of(const struct dp_run *run, pid_t pid)
{
	for (size_t k = 0; pid && !run->starts && !run->trace->follow && k < run->nsessions; k++)
		if (dp_target_pid(run->session[k]->target) == pid)
			return dp_target_comm(run->session[k]->target);
	return NULL;
}

/* The process that all hits are of; 0: of several, or it is not known any more. */
static pid_t pid_of(const struct dp_run *run, const struct dp_row *row)
{
	const enum dp_aggs_group by = dp_aggs_grouped(run->trace);
	if (by == DP_GROUP_PID || row->nframes)
		return (pid_t)row->key.group;
	return run->nsessions == 1 && !run->starts && !run->trace->follow ? dp_target_pid(run->session[0]->target) : 0;
}

static void show_frames(const struct dp_run *run, const struct dp_rows *a, const struct dp_row *row, struct dp_agg_row *ret)
{
	const uint64_t *frames = row->words + a->want.words;
	if (a->names) {
		ret->stack = dp_frame_names_get(a->names, row->key.key);
		return;
	}
	ret->frames = frames;
	ret->nframes = row->nframes;
	ret->image = image_of(run, ret->pid);
	ret->cut = row->nframes && dp_frames_cut(ret->image, frames[row->nframes - 1], row->nframes, a->want.stack - 1);
}

static void show_tuple(const struct dp_run *run, const struct dp_rows *a, const struct dp_row *row, struct dp_agg_row *ret)
{
	const struct dp_asked *asked = &run->trace->asked;
	ret->keys = dp_tuples_shown(a->tuples, asked->key, row->key.keyed ? row->key.key : row->key.group);
	ret->nkeys = asked->nkeys;
	ret->keyed = ret->keys;
	for (size_t i = 0; ret->keys && i < asked->nkeys; i++)
		if (asked->key[i].kind == DP_KEY_PID)
			ret->pid = (pid_t)ret->keys[i].number;
}

static struct dp_agg_row shown_row(const struct dp_run *run, const struct dp_rows *a, const struct dp_row *row, uint64_t *cells)
{
	const struct dp_probe *p = &run->trace->probe[row->key.probe];
	const enum dp_aggs_group by = dp_aggs_grouped(run->trace);
	const bool worded = by == DP_GROUP_COMM || by == DP_GROUP_EXE;
	struct dp_agg_row ret = {
	        .name = p->title ? p->title : p->name,
	        .title = p->title ? NULL : p->shown,
	        .pid = pid_of(run, row),
	        .keyed = row->key.keyed || by,
	        .key = by == DP_GROUP_PID ? row->key.group : row->key.key,
	        .word = worded && row->key.group ? a->word[row->key.group - 1] : NULL,
	        .cells = cells,
	        .hits = dp_agg_hits(&run->trace->asked.part[0], cells),
	        .unpaired = row->unpaired,
	        .crowded = row->crowded,
	};
	if (a->tuples)
		show_tuple(run, a, row, &ret);
	else if (a->want.stack && row->key.keyed)
		show_frames(run, a, row, &ret);
	ret.comm = comm_of(run, ret.pid);
	return ret;
}

void dp_rows_forget_shown(struct dp_rows *a)
{
	free(a->shown);
	free(a->cells);
	a->shown = NULL;
	a->cells = NULL;
}

/* Their number; false: out of memory. */
static bool make_rows(const struct dp_run *run, struct dp_rows *a, bool delta, size_t *n)
{
	size_t old = 0;
	dp_rows_forget_shown(a);
	a->shown = calloc(a->n + 1, sizeof(*a->shown));
	a->cells = calloc(a->n * a->want.words + 1, sizeof(*a->cells));
	if (!a->shown || !a->cells)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		uint64_t *own = a->cells + *n * a->want.words;
		if (a->want.keys && !a->row[i].key.keyed)
			continue;
		memcpy(own, a->row[i].words, a->want.words * sizeof(*own));
		take_off(a, &a->row[i], &old, delta, own);
		a->shown[(*n)++] = shown_row(run, a, &a->row[i], own);
	}
	return true;
}

bool dp_rows_shown(struct dp_run *run, bool delta, struct dp_aggs_shown *ret)
{
	struct dp_rows *a = run->rows;
	const struct dp_asked *asked = &run->trace->asked;
	const uint64_t now = run->clear_ns ? run->clear_ns : dp_now_ns(), since = delta ? a->shown_ns : run->armed_ns;
	size_t n = 0;
	if (!make_rows(run, a, delta, &n))
		return false;
	dp_aggs_sort(a->shown, n, asked->rank);
	*ret = dp_asked_shown(asked);
	ret->pids = run->nsessions > 1 && a->want.stack && !a->names && !a->tuples;
	ret->delta = delta;
	ret->seconds = (double)(now - since) / 1e9;
	ret->row = a->shown;
	ret->n = n;
	return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * Makes rows from cells: sums those of all threads and processes, joins those of a function's exits, subtracts the values at the
 * end of the last interval, and sorts, greatest first. With --by pid, comm or exe a row is the sum of the processes that have it
 * in common.
 *
 * Processes may come and go (starts.h). The rows of one that has ended are added to those of the others that have (ended_rows.h),
 * and its session is destroyed: so a row's key must not name a session. Backtraces are then keys by their names (frame_names.h);
 * in a run of fixed processes they are addresses in one of them.
 */
#include "session/process/session_aggs.h"
#include "session/run/rows_internal.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_NS    UINT64_C(100000000)
#define ENDED_MOST (32u << 20) /* bytes of rows of processes that have ended */

/* ---- rows ------------------------------------------------------------------------------------------------------------------ */

static void rows_free(struct dp_row *row, size_t n)
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
static struct dp_row *add_row(struct dp_rows *a, const struct dp_row *like, const uint64_t *frames)
{
	if (a->n == a->capacity) {
		const size_t capacity = a->capacity ? 2 * a->capacity : 64;
		struct dp_row *grown = realloc(a->row, capacity * sizeof(*grown));
		a->failed |= !grown;
		if (!grown)
			return NULL;
		a->row = grown;
		a->capacity = capacity;
	}
	struct dp_row *row = &a->row[a->n];
	*row = *like;
	row->words = calloc(a->want.words + like->nframes + 1, sizeof(*row->words));
	a->failed |= !row->words;
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

int dp_rows_compare(const struct dp_row *x, const struct dp_row *y, unsigned words)
{
	int order = by_number(x->key.group, y->key.group);
	order = order ? order : by_number(x->key.probe, y->key.probe);
	order = order ? order : by_number(x->key.keyed, y->key.keyed);
	order = order ? order : by_number(x->key.key, y->key.key);
	order = order ? order : by_number(x->nframes, y->nframes);
	for (unsigned i = words; !order && i < words + x->nframes; i++)
		order = by_number(x->words[i], y->words[i]);
	return order;
}

static int in_order(const void *x, const void *y, void *data)
{
	return dp_rows_compare(x, y, ((const struct dp_rows *)data)->want.words);
}

/* Joins neighbours with the same key. */
static void merge(struct dp_rows *a)
{
	size_t kept = 0;
	if (a->n)
		qsort_r(a->row, a->n, sizeof(*a->row), in_order, a);
	for (size_t i = 0; i < a->n; i++) {
		struct dp_row *last = kept ? &a->row[kept - 1] : NULL;
		if (!last || dp_rows_compare(last, &a->row[i], a->want.words)) {
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

/* The number of a word, from 1; 0: out of memory. */
static uint64_t number_of(struct dp_rows *a, const char *word)
{
	for (size_t i = 0; i < a->nwords; i++)
		if (!strcmp(a->word[i], word))
			return i + 1;
	char **grown = realloc(a->word, (a->nwords + 1) * sizeof(*grown));
	a->word = grown ? grown : a->word;
	char *copy = grown ? strdup(word) : NULL;
	a->failed |= !copy;
	if (!copy)
		return 0;
	a->word[a->nwords] = copy;
	return ++a->nwords;
}

static const char *exe_of(const struct dp_session *s)
{
	return dp_module_path(dp_image_module(dp_target_image(s->target), 0));
}

/* The process's own parts of a tuple. */
static void fill_own(const struct dp_run *run, const struct dp_rows *a, const struct dp_session *s, uint64_t part[DP_KEYS_MOST])
{
	const struct dp_asked *asked = &run->trace->asked;
	for (size_t i = 0; i < asked->nkeys; i++)
		if (asked->key[i].kind == DP_KEY_PID)
			part[i] = (uint64_t)dp_target_pid(s->target);
		else if (asked->key[i].kind == DP_KEY_COMM)
			part[i] = dp_tuples_word(a->tuples, dp_target_comm(s->target));
		else if (asked->key[i].kind == DP_KEY_EXE)
			part[i] = dp_tuples_word(a->tuples, exe_of(s));
}

static uint64_t tuple_of_process(const struct dp_run *run, const struct dp_rows *a, const struct dp_session *s)
{
	uint64_t part[DP_KEYS_MOST] = {0};
	if (a->want.keys)
		return 0;
	fill_own(run, a, s, part);
	return dp_tuples_number(a->tuples, part);
}

static uint64_t group_of(const struct dp_run *run, struct dp_rows *a, const struct dp_session *s)
{
	if (a->tuples)
		return tuple_of_process(run, a, s);
	switch (dp_aggs_grouped(run->trace)) {
	case DP_GROUP_PID:
		return (uint64_t)dp_target_pid(s->target);
	case DP_GROUP_COMM:
		return number_of(a, dp_target_comm(s->target));
	case DP_GROUP_EXE:
		return number_of(a, exe_of(s));
	default:
		return 0;
	}
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static uint64_t hits_of(const struct dp_run *run, const uint64_t *cells)
{
	return dp_agg_hits(&run->trace->asked.part[0], cells);
}

struct target { /* the target whose cells are being read */
	const struct dp_run *run;
	struct dp_rows *a;
	struct dp_session *s;
	uint64_t group;
};

static struct dp_row *add_probe_row(const struct target *t, unsigned i)
{
	const struct dp_row like = {.key = {.group = t->group, .probe = dp_aggs_row(t->run->trace, i)}, .site = i};
	return add_row(t->a, &like, NULL);
}

static void read_probe(const struct target *t, unsigned i)
{
	struct dp_session *s = t->s;
	struct dp_agg_loss loss;
	struct dp_row *row = s->place[i].placed ? add_probe_row(t, i) : NULL;
	if (!row)
		return;
	dp_target_cells(s->target, i, row->words);
	dp_target_agg_loss(s->target, i, &loss);
	row->unpaired = loss.unpaired;
	row->crowded = loss.crowded;
	dp_session_aggs_loss(s, i);
	s->place[i].recorded = hits_of(t->run, row->words);
}

/* Hits whose key finds no room are counted as if the process itself had found none. */
static void crowd(const struct target *t, unsigned i, uint64_t hits)
{
	struct dp_row *row = add_probe_row(t, i);
	t->s->place[i].crowded += hits;
	if (row)
		row->crowded = hits;
}

/* The key is the pid that the process itself sees. One that has ended unseen keeps it: it must not be another target's row. */
static void name_process(const struct target *t, struct dp_row_key *key)
{
	const pid_t outer = dp_target_outer_pid(t->s->target, (pid_t)key->key);
	if (outer)
		key->key = (uint64_t)outer;
	else
		key->group = (uint64_t)dp_target_pid(t->s->target);
}

/* Likewise: a pid that cannot be translated must not be another target's. */
static uint64_t outer_pid(const struct target *t, uint64_t inner)
{
	const pid_t outer = dp_target_outer_pid(t->s->target, (pid_t)inner);
	return outer ? (uint64_t)outer : (uint64_t)dp_target_pid(t->s->target) << 32 | (uint32_t)inner;
}

static uint64_t name_stack(const struct target *t, const struct dp_key_cells *key, unsigned depth)
{
	const struct dp_frames_seen seen = {key->frames, key->nframes < depth ? key->nframes : depth, depth};
	return dp_frame_names_number(dp_tuples_names(t->a->tuples), dp_target_image(t->s->target), &seen);
}

static uint64_t name_caller(const struct target *t, unsigned probe, uint64_t address)
{
	const uint64_t frame[2] = {t->s->place[probe].addr, address};
	return dp_tuples_caller(t->a->tuples, dp_target_image(t->s->target), frame);
}

static uint64_t name_text(const struct target *t, const struct dp_key_cells *key, size_t v)
{
	char text[DP_AGG_TEXT_CHARS + sizeof("...")];
	const struct dp_key_text *of = &key->text[v];
	if (key->value[v] & DP_AGG_TEXT_NULL)
		return dp_tuples_null(t->a->tuples);
	if (key->value[v] & DP_AGG_TEXT_UNREADABLE)
		return dp_tuples_word(t->a->tuples, "<unreadable>");
	snprintf(text, sizeof(text), "%.*s", (int)of->n, of->bytes ? (const char *)of->bytes : "");
	return dp_tuples_word(t->a->tuples, text);
}

/* The tuple's number; 0: no room. */
static uint64_t tuple_of(const struct target *t, const struct dp_key_cells *key)
{
	const struct dp_asked *asked = &t->run->trace->asked;
	uint64_t part[DP_KEYS_MOST] = {0};
	fill_own(t->run, t->a, t->s, part);
	for (size_t i = 0, v = 0; i < asked->nkeys; i++) {
		if (asked->key[i].kind == DP_KEY_STACK) {
			part[i] = name_stack(t, key, asked->key[i].depth);
			if (!part[i])
				return 0;
		}
		if (!dp_aggs_in_target(t->run->trace, i) || v >= t->a->want.values)
			continue;
		if (asked->key[i].kind == DP_KEY_TEXT) {
			if (!(part[i] = name_text(t, key, v++)))
				return 0;
			continue;
		}
		part[i] = key->value[v++];
		if (asked->key[i].kind == DP_KEY_CALLER && !(part[i] = name_caller(t, key->probe, part[i])))
			return 0;
		if (asked->key[i].kind == DP_KEY_PID)
			part[i] = outer_pid(t, part[i]);
	}
	return dp_tuples_number(t->a->tuples, part);
}

static struct dp_row_key key_of(const struct target *t, const struct dp_key_cells *key)
{
	struct dp_row_key ret = {.probe = dp_aggs_row(t->run->trace, key->probe), .keyed = 1, .key = key->key};
	const struct dp_frames_seen seen = {key->frames, key->nframes, t->a->want.stack - 1};
	if (t->a->tuples)
		ret.key = tuple_of(t, key);
	else if (t->a->want.stack && t->a->names)
		ret.key = dp_frame_names_number(t->a->names, dp_target_image(t->s->target), &seen);
	else if (t->run->trace->follow && dp_asked_is_by(&t->run->trace->asked, DP_KEY_PID))
		name_process(t, &ret);
	else if (t->a->want.stack)
		ret.group = (uint64_t)dp_target_pid(t->s->target);
	return ret;
}

static bool on_key(const struct dp_key_cells *key, void *data)
{
	const struct target *t = data;
	struct dp_rows *a = t->a;
	const uint64_t hits = hits_of(t->run, key->cells);
	const struct dp_row like = {
	        .key = key_of(t, key), .nframes = a->names || a->tuples ? 0 : key->nframes, .site = key->probe};
	if ((a->tuples || (a->want.stack && a->names)) && !like.key.key) {
		crowd(t, key->probe, hits);
		return true;
	}
	struct dp_row *row = add_row(a, &like, key->frames);
	if (!row)
		return false;
	memcpy(row->words, key->cells, a->want.words * sizeof(*row->words));
	t->s->place[key->probe].recorded += hits_of(t->run, row->words);
	return true;
}

static void read_session(const struct dp_run *run, struct dp_rows *a, struct dp_session *s)
{
	if (!s->answers)
		return;
	a->want = s->answers->want;
	struct target t = {run, a, s, group_of(run, a, s)};
	for (unsigned i = 0; i < run->trace->nprobes; i++)
		read_probe(&t, i);
	if (a->want.keys)
		dp_target_keys(s->target, on_key, &t);
}

static bool on_ended(const struct dp_ended_row *ended, void *data)
{
	struct dp_rows *a = data;
	const struct dp_row like = {.key = ended->key, .unpaired = ended->unpaired, .crowded = ended->crowded};
	struct dp_row *row = add_row(a, &like, NULL);
	if (row)
		memcpy(row->words, ended->cells, a->want.words * sizeof(*row->words));
	return row;
}

static void look(struct dp_run *run, struct dp_rows *a)
{
	clear(a);
	run->recorded = 0;
	for (size_t k = 0; k < run->nsessions; k++)
		read_session(run, a, run->session[k]);
	if (a->ended)
		dp_ended_rows_each(a->ended, on_ended, a);
	merge(a);
	for (size_t i = 0; i < a->n; i++)
		run->recorded += hits_of(run, a->row[i].words);
}

static struct dp_rows *state(struct dp_run *run)
{
	struct dp_rows *a = run->rows;
	if (!run->trace->asked.what || a)
		return a;
	a = run->rows = calloc(1, sizeof(*run->rows));
	if (!a)
		return NULL;
	a->shown_ns = run->armed_ns;
	if (run->starts && dp_session_counts_stacks(run->trace)) {
		a->names = dp_frame_names_create();
		a->failed = !a->names;
	}
	if (dp_asked_tuples(&run->trace->asked)) {
		a->tuples = dp_tuples_create(run->trace->asked.nkeys);
		if (!a->tuples) {
			free(a);
			return run->rows = NULL;
		}
	}
	return a;
}

/* ---- processes that have ended --------------------------------------------------------------------------------------------- */

static void add_ended(struct dp_run *run, struct dp_session *s, const struct dp_row *row)
{
	struct dp_rows *a = run->rows;
	struct dp_ended_row *to = a->ended ? dp_ended_rows_get(a->ended, &row->key) : NULL;
	const uint64_t hits = hits_of(run, row->words);
	if (to) {
		for (unsigned w = 0; w < a->want.words; w++)
			dp_cells_add(&a->want, to->cells, w, row->words[w]);
		to->unpaired += row->unpaired;
		to->crowded += row->crowded;
		return;
	}
	s->place[row->site].recorded -= hits;
	s->place[row->site].crowded += hits;
	a->failed |= !a->ended;
}

void dp_rows_keep(struct dp_run *run, size_t k)
{
	struct dp_rows *a = state(run);
	struct dp_session *s = run->session[k];
	if (!a || !s->answers)
		return;
	clear(a);
	read_session(run, a, s);
	if (!a->ended)
		a->ended = dp_ended_rows_create(a->want.words, ENDED_MOST);
	for (size_t i = 0; i < a->n; i++)
		add_ended(run, s, &a->row[i]);
	clear(a);
}

/* ---- when ------------------------------------------------------------------------------------------------------------------ */

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
	struct dp_rows *a = run->rows;
	if (!a)
		return;
	clear(a);
	rows_free(a->before, a->nbefore);
	dp_rows_forget_shown(a);
	dp_ended_rows_destroy(a->ended);
	dp_frame_names_destroy(a->names);
	dp_tuples_destroy(a->tuples);
	for (size_t i = 0; i < a->nwords; i++)
		free(a->word[i]);
	free(a->word);
	free(a);
	run->rows = NULL;
}

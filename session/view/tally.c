/* SPDX-License-Identifier: MIT */
#include "session/view/tally.h"

#include "agent/abi.h"
#include "injector/injector.h"
#include "output/events/frames.h"
#include "session/process/session_aggs.h"
#include "session/totals/ended_rows.h"
#include "session/totals/frame_names.h"
#include "session/totals/tuples.h"
#include "trampoline/trampoline.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MOST (256u << 20) /* bytes of rows */

struct tallied_stack { /* the first backtrace with these names, for runs of one process */
	uint64_t *frame;
	unsigned n, most;
	struct dp_image *image;
	pid_t pid;
};

struct dp_tally {
	const struct dp_asked *asked; /* &like.asked */
	struct dp_view_source of;
	struct dp_trace_spec like; /* with the classes as probes, for what takes a trace's */
	struct dp_view_expr value[DP_AGG_PARTS_MOST], by[DP_KEYS_MOST];
	enum dp_aggs_group group;
	bool stacks;
	bool several;             /* keys, or a caller */
	struct dp_tuples *tuples; /* of these, and names of processes */
	struct dp_cells_want want;
	struct dp_ended_rows *rows;
	struct dp_frame_names *names;
	struct tallied_stack *stack; /* by number - 1 */
	size_t nstacks;
	pid_t pid; /* the only one so far; -1: there are several */
	uint64_t failed;
	struct dp_agg_row *shown;
};

/* ---- creation -------------------------------------------------------------------------------------------------------------- */

static struct dp_error *check_by(const struct dp_tally *t)
{
	if (dp_asked_has_key(t->asked, DP_KEY_EXE))
		return dp_error(DP_TAG_USAGE, "--by exe: events have no executable in a trace; use --by comm or --by pid");
	const bool caller = dp_asked_has_key(t->asked, DP_KEY_CALLER);
	if (!caller && !dp_asked_has_key(t->asked, DP_KEY_STACK))
		return NULL;
	for (size_t i = 0; i < t->of.n; i++)
		if (dp_fields_unwind(t->of.class[i].fields))
			return NULL;
	return dp_error(DP_TAG_NO_VARIABLE, "--by %s: no backtraces were recorded (-t backtrace)",
	                caller ? "caller" : "backtrace");
}

static struct dp_error *compile_one(struct dp_tally *t, const char *text, enum dp_view_use use, struct dp_view_expr *ret,
                                    size_t *missing)
{
	size_t also;
	DP_TRY(dp_view_expr_create(&t->of, text, use, ret, &also));
	*missing = *missing < also ? *missing : also;
	return NULL;
}

static struct dp_error *compile(struct dp_tally *t, size_t *missing)
{
	const struct dp_asked *a = t->asked;
	*missing = SIZE_MAX;
	for (size_t i = 0; i < a->nparts; i++)
		if (a->part[i].value)
			DP_TRY(compile_one(t, a->part[i].value, DP_VIEW_VALUE, &t->value[i], missing));
	for (size_t i = 0; i < a->nkeys; i++)
		if (a->key[i].kind == DP_KEY_VALUE || a->key[i].kind == DP_KEY_TEXT) {
			DP_TRY(compile_one(t, a->key[i].text, DP_VIEW_KEY, &t->by[i], missing));
			if (t->by[i].is_string)
				t->like.asked.key[i].kind = DP_KEY_TEXT;
		}
	t->several = dp_asked_tuples(t->asked);
	return check_by(t);
}

/* All places that make a call are one probe to the user. */
static bool is_call(const struct dp_event_class *class)
{
	return class->title && !strncmp(class->title, "syscall:", strlen("syscall:"));
}

static struct dp_error *allocate(struct dp_tally *t)
{
	t->like.probe = calloc(t->of.n + 1, sizeof(*t->like.probe));
	t->rows = dp_ended_rows_create(t->want.words, ROWS_MOST);
	t->names = t->stacks ? dp_frame_names_create() : NULL;
	t->tuples = dp_tuples_create(t->asked->nkeys);
	if (!t->like.probe || !t->rows || (t->stacks && !t->names) || !t->tuples)
		return dp_error_nomem();
	t->like.nprobes = t->of.n;
	for (size_t i = 0; i < t->of.n; i++) {
		struct dp_probe *p = &t->like.probe[i];
		p->name = (char *)(uintptr_t)t->of.class[i].name;
		p->title = is_call(&t->of.class[i]) ? (char *)(uintptr_t)t->of.class[i].title : NULL;
		p->build_id = (char *)(uintptr_t) ""; /* returns of one function share a row */
	}
	return NULL;
}

struct dp_error *dp_tally_create(const struct dp_asked *asked, const struct dp_view_source *of, struct dp_tally **ret,
                                 size_t *missing)
{
	struct dp_tally *t = calloc(1, sizeof(*t));
	if (!t)
		return dp_error_nomem();
	t->of = *of;
	t->like.asked = *asked;
	t->asked = &t->like.asked;
	t->group = dp_aggs_grouped(&t->like);
	t->stacks = dp_asked_is_by(asked, DP_KEY_STACK);
	dp_aggs_cells(asked, &t->want);
	struct dp_error *err = allocate(t);
	if (!err)
		err = compile(t, missing);
	if (err)
		dp_tally_destroy(t);
	else
		*ret = t;
	return err;
}

struct dp_tally *dp_tally_destroy(struct dp_tally *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < DP_AGG_PARTS_MOST; i++)
		dp_view_expr_fini(&t->value[i]);
	for (size_t i = 0; i < DP_KEYS_MOST; i++)
		dp_view_expr_fini(&t->by[i]);
	dp_ended_rows_destroy(t->rows);
	dp_tuples_destroy(t->tuples);
	dp_frame_names_destroy(t->names);
	for (size_t i = 0; i < t->nstacks; i++)
		free(t->stack[i].frame);
	free(t->stack);
	free(t->shown);
	free(t->like.probe);
	free(t);
	return NULL;
}

/* ---- keys ------------------------------------------------------------------------------------------------------------------ */

static const struct dp_field_value *backtrace_of(const struct dp_view_values *v, unsigned *most)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->class->fields->field[i].type == DP_TYPE_BACKTRACE) {
			*most = v->class->fields->field[i].size;
			return &v->value[i];
		}
	return NULL;
}

static bool keep_stack(struct dp_tally *t, const struct dp_view_values *v, const struct dp_frames_seen *seen)
{
	struct tallied_stack *grown = reallocarray(t->stack, t->nstacks + 1, sizeof(*grown));
	if (!grown)
		return false;
	t->stack = grown;
	struct tallied_stack *s = &grown[t->nstacks];
	*s = (struct tallied_stack){calloc(seen->n + 1, sizeof(*s->frame)), seen->n, seen->most, v->event->image, v->event->pid};
	if (!s->frame)
		return false;
	memcpy(s->frame, seen->frame, seen->n * sizeof(*s->frame));
	t->nstacks++;
	return true;
}

/* False: the event has no backtrace. */
static bool frames_of(const struct dp_view_values *v, uint64_t frame[UINT8_MAX], unsigned depth, struct dp_frames_seen *ret)
{
	unsigned most = 0;
	const struct dp_field_value *b = backtrace_of(v, &most);
	if (!b || !v->event->image || b->n > UINT8_MAX)
		return false;
	memcpy(frame, b->bytes, b->n * sizeof(*frame));
	*ret = (struct dp_frames_seen){frame, b->n < depth ? (unsigned)b->n : depth, most < depth ? most : depth};
	return true;
}

/* The number of the event's backtrace; 0: it has none, or there is no room. */
static uint64_t stack_of(struct dp_tally *t, const struct dp_view_values *v)
{
	uint64_t frame[UINT8_MAX];
	struct dp_frames_seen seen;
	if (!frames_of(v, frame, t->asked->key[0].depth, &seen))
		return 0;
	const uint64_t number = dp_frame_names_number(t->names, v->event->image, &seen);
	if (number > t->nstacks && !keep_stack(t, v, &seen))
		return 0;
	return number;
}

/* One part of a tuple; false: it has none. */
static bool part_of(struct dp_tally *t, size_t i, const struct dp_view_values *v, uint64_t *ret)
{
	const struct dp_key_asked *key = &t->asked->key[i];
	const bool caller = key->kind == DP_KEY_CALLER;
	uint64_t frame[UINT8_MAX] = {0};
	struct dp_frames_seen seen;
	switch (key->kind) {
	case DP_KEY_PID:
		*ret = (uint64_t)v->event->pid;
		return true;
	case DP_KEY_COMM:
		return (*ret = dp_tuples_word(t->tuples, v->event->comm ? v->event->comm : ""));
	case DP_KEY_TEXT: {
		bool null;
		const char *text = dp_view_text(&t->by[i], v, &null);
		return text && (*ret = null ? dp_tuples_null(t->tuples) : dp_tuples_word(t->tuples, text));
	}
	case DP_KEY_VALUE:
		return dp_view_eval(&t->by[i], v, (int64_t *)ret);
	default:
		if (!frames_of(v, frame, caller ? 2 : key->depth, &seen))
			return false;
		*ret = caller ? dp_tuples_caller(t->tuples, v->event->image, frame)
		              : dp_frame_names_number(dp_tuples_names(t->tuples), v->event->image, &seen);
		return *ret;
	}
}

static uint64_t tuple_of(struct dp_tally *t, const struct dp_view_values *v)
{
	uint64_t part[DP_KEYS_MOST];
	for (size_t i = 0; i < t->asked->nkeys; i++)
		if (!part_of(t, i, v, &part[i]))
			return 0;
	return dp_tuples_number(t->tuples, part);
}

/* False: the event has no key. */
static bool key_of(struct dp_tally *t, const struct dp_view_values *v, struct dp_row_key *ret)
{
	const struct dp_event *e = v->event;
	int64_t key;
	*ret = (struct dp_row_key){.probe = dp_aggs_row(&t->like, e->probe)};
	if (t->group == DP_GROUP_PID)
		ret->group = (uint64_t)e->pid;
	else if (t->group == DP_GROUP_COMM)
		ret->group = dp_tuples_word(t->tuples, e->comm ? e->comm : "");
	if (t->group != DP_GROUP_NONE || !t->asked->nkeys)
		return true;
	ret->keyed = 1;
	if (t->several)
		return (ret->key = tuple_of(t, v));
	if (t->stacks)
		return (ret->key = stack_of(t, v));
	if (!dp_view_eval(&t->by[0], v, &key))
		return false;
	ret->key = (uint64_t)key;
	return true;
}

/* ---- cells ----------------------------------------------------------------------------------------------------------------- */

static unsigned log2_bucket(int64_t value)
{
	return value < 0 ? DP_AGG_LOG2_WORDS - 1 : value ? 64u - (unsigned)__builtin_clzll((uint64_t)value) : 0;
}

static unsigned linear_bucket(const struct dp_agg_part *a, int64_t value)
{
	if (value < a->low)
		return 0;
	const uint64_t i = ((uint64_t)value - (uint64_t)a->low) / a->step;
	return i < a->buckets ? (unsigned)i + 1 : a->buckets + 1;
}

static void raise_to(uint64_t *cell, uint64_t value)
{
	*cell = *cell < value ? value : *cell;
}

/* As the stubs count (aggregate_cell.c). */
static void count(const struct dp_agg_part *a, uint64_t *cells, int64_t value)
{
	const uint64_t top = UINT64_C(1) << 63;
	if (a->what & DP_AGG_LOG2) {
		cells[log2_bucket(value)]++;
	} else if (a->what & DP_AGG_DECIMAL) {
		cells[dp_decimal_bucket(value)]++;
	} else if (a->what & DP_AGG_LINEAR) {
		cells[linear_bucket(a, value)]++;
	} else {
		cells[DP_AGG_WORD_COUNT]++;
		if (a->what & DP_AGG_SUM)
			cells[DP_AGG_WORD_SUM] += (uint64_t)value;
		if (a->what & DP_AGG_MAX)
			raise_to(&cells[DP_AGG_WORD_MAX], (uint64_t)value ^ top);
		if (a->what & DP_AGG_MIN)
			raise_to(&cells[DP_AGG_WORD_MIN], ~((uint64_t)value ^ top));
	}
}

static bool is_counted(const struct dp_tally *t, size_t class)
{
	bool is = true;
	for (size_t i = 0; i < DP_AGG_PARTS_MOST; i++)
		is = is && (!t->value[i].expr || t->value[i].expr[class]);
	for (size_t i = 0; i < DP_KEYS_MOST; i++)
		is = is && (!t->by[i].expr || t->by[i].expr[class]);
	return is;
}

/* False: one of them failed. */
static bool values_of(const struct dp_tally *t, const struct dp_view_values *v, int64_t ret[DP_AGG_PARTS_MOST])
{
	for (size_t i = 0; i < t->asked->nparts; i++)
		if (t->asked->part[i].value && !dp_view_eval(&t->value[i], v, &ret[i]))
			return false;
	return true;
}

bool dp_tally_event(struct dp_tally *t, const struct dp_view_values *values)
{
	struct dp_row_key key;
	int64_t value[DP_AGG_PARTS_MOST] = {0};
	if (!is_counted(t, values->event->probe))
		return true;
	t->pid = !t->pid || t->pid == values->event->pid ? values->event->pid : -1;
	if (!key_of(t, values, &key) || !values_of(t, values, value)) {
		t->failed++;
		return true;
	}
	struct dp_ended_row *row = dp_ended_rows_get(t->rows, &key);
	if (!row)
		return false;
	uint64_t *cells = row->cells;
	for (size_t i = 0; i < t->asked->nparts; cells += dp_agg_part_words(&t->asked->part[i++]))
		count(&t->asked->part[i], cells, value[i]);
	return true;
}

uint64_t dp_tally_failed(const struct dp_tally *t)
{
	return t->failed;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------ */

/* Without a key, probes that have counted nothing have a row, too. */
static bool add_silent(struct dp_tally *t)
{
	bool ok = true;
	for (size_t i = 0; ok && !t->asked->nkeys && i < t->of.n; i++) {
		if (!is_counted(t, i))
			continue;
		const struct dp_row_key key = {.probe = dp_aggs_row(&t->like, i)};
		ok = dp_ended_rows_get(t->rows, &key);
	}
	return ok;
}

struct listed {
	const struct dp_ended_row **row;
	size_t n;
};

static bool list(const struct dp_ended_row *row, void *data)
{
	struct listed *l = data;
	const struct dp_ended_row **grown = reallocarray(l->row, l->n + 1, sizeof(const struct dp_ended_row *));
	if (!grown)
		return false;
	l->row = grown;
	l->row[l->n++] = row;
	return true;
}

static int by_number(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

/* Backtraces of one process by their addresses, as in a run. */
static int by_frames(const struct dp_tally *t, uint64_t x, uint64_t y)
{
	const struct tallied_stack *a = &t->stack[x - 1], *b = &t->stack[y - 1];
	int order = by_number(a->n, b->n);
	for (unsigned i = 0; !order && i < a->n; i++)
		order = by_number(a->frame[i], b->frame[i]);
	return order;
}

static int in_order(const void *x, const void *y, void *data)
{
	const struct dp_tally *t = data;
	const struct dp_row_key *a = &(*(struct dp_ended_row *const *)x)->key, *b = &(*(struct dp_ended_row *const *)y)->key;
	int order = by_number(a->group, b->group);
	order = order ? order : by_number(a->probe, b->probe);
	order = order ? order : by_number(a->keyed, b->keyed);
	if (!order && t->stacks && t->pid > 0 && a->keyed)
		return by_frames(t, a->key, b->key);
	return order ? order : by_number(a->key, b->key);
}

static void show_stack(const struct dp_tally *t, uint64_t number, struct dp_agg_row *ret)
{
	const struct tallied_stack *s = &t->stack[number - 1];
	if (t->pid < 0) {
		ret->stack = dp_frame_names_get(t->names, number);
		return;
	}
	ret->frames = s->frame;
	ret->nframes = s->n;
	ret->image = s->image;
	ret->pid = s->pid;
	ret->cut = s->n && dp_frames_cut(s->image, s->frame[s->n - 1], s->n, s->most);
}

static void show_tuple(const struct dp_tally *t, uint64_t number, struct dp_agg_row *ret)
{
	ret->keys = dp_tuples_shown(t->tuples, t->asked->key, number);
	ret->nkeys = t->asked->nkeys;
	for (size_t i = 0; ret->keys && i < t->asked->nkeys; i++)
		if (t->asked->key[i].kind == DP_KEY_PID)
			ret->pid = (pid_t)ret->keys[i].number;
}

static struct dp_agg_row show(const struct dp_tally *t, const struct dp_ended_row *row, const uint64_t *cells)
{
	const struct dp_event_class *class = &t->of.class[row->key.probe];
	struct dp_agg_row ret = {
	        .name = is_call(class) ? class->title : class->name,
	        .title = is_call(class) ? NULL : class->title,
	        .pid = t->group == DP_GROUP_PID ? (pid_t)row->key.group
	               : t->pid > 0             ? t->pid
	                                        : 0,
	        .keyed = row->key.keyed || t->group,
	        .key = t->group == DP_GROUP_PID ? row->key.group : row->key.key,
	        .word = t->group == DP_GROUP_COMM && row->key.group ? dp_tuples_word_get(t->tuples, row->key.group) : NULL,
	        .cells = cells,
	        .hits = dp_agg_hits(&t->asked->part[0], cells),
	};
	if (t->several)
		show_tuple(t, row->key.key, &ret);
	else if (t->stacks && row->key.keyed)
		show_stack(t, row->key.key, &ret);
	return ret;
}

/* Rows that are equal otherwise are shown by the addresses of their cells, so these are in the order of the keys. */
static bool make_rows(struct dp_tally *t, size_t *n)
{
	struct listed l = {0};
	bool ok = add_silent(t) && dp_ended_rows_each(t->rows, list, &l);
	const size_t bytes = t->want.words * sizeof(uint64_t);
	free(t->shown);
	t->shown = ok ? calloc(l.n + 1, sizeof(*t->shown) + bytes) : NULL;
	ok = t->shown;
	if (ok && l.n)
		qsort_r(l.row, l.n, sizeof(*l.row), in_order, t);
	uint64_t *cells = ok ? (uint64_t *)(void *)(t->shown + l.n + 1) : NULL;
	for (size_t i = 0; ok && i < l.n; i++, cells += t->want.words) {
		memcpy(cells, l.row[i]->cells, bytes);
		t->shown[i] = show(t, l.row[i], cells);
	}
	*n = l.n;
	free(l.row);
	return ok;
}

bool dp_tally_shown(struct dp_tally *t, double seconds, struct dp_aggs_shown *ret)
{
	const struct dp_asked *a = t->asked;
	size_t n;
	if (!make_rows(t, &n))
		return false;
	dp_aggs_sort(t->shown, n, a->rank);
	*ret = dp_asked_shown(a);
	ret->seconds = seconds;
	ret->row = t->shown;
	ret->n = n;
	return true;
}

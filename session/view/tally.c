/* SPDX-License-Identifier: MIT */
#include "session/view/tally.h"

#include "agent/abi.h"
#include "injector/injector.h"
#include "output/events/frames.h"
#include "session/process/session_aggs.h"
#include "session/totals/ended_rows.h"
#include "session/totals/frame_names.h"
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
	const struct dp_asked *asked;
	struct dp_view_source of;
	struct dp_trace_spec like; /* with the classes as probes, for what takes a trace's */
	struct dp_view_expr value, by;
	enum dp_aggs_group group;
	bool stacks;
	struct dp_cells_want want;
	struct dp_ended_rows *rows;
	struct dp_frame_names *names;
	struct tallied_stack *stack; /* by number - 1 */
	size_t nstacks;
	char **word; /* names of processes */
	size_t nwords;
	pid_t pid; /* the only one so far; -1: there are several */
	uint64_t failed;
	struct dp_agg_row *shown;
};

/* ---- creation -------------------------------------------------------------------------------------------------------------- */

static struct dp_error *check_by(const struct dp_tally *t)
{
	if (t->group == DP_GROUP_EXE)
		return dp_error(DP_TAG_USAGE, "--by exe: events have no executable in a trace; use --by comm or --by pid");
	if (!t->stacks)
		return NULL;
	for (size_t i = 0; i < t->of.n; i++)
		if (dp_fields_unwind(t->of.class[i].fields))
			return NULL;
	return dp_error(DP_TAG_NO_VARIABLE, "--by backtrace: no backtraces were recorded (-t backtrace)");
}

static struct dp_error *compile(struct dp_tally *t, size_t *missing)
{
	const struct dp_asked *a = t->asked;
	*missing = SIZE_MAX;
	if (a->value)
		DP_TRY(dp_view_expr_create(&t->of, a->value, false, &t->value, missing));
	if (a->by && !t->stacks && t->group == DP_GROUP_NONE) {
		size_t also;
		DP_TRY(dp_view_expr_create(&t->of, a->by, false, &t->by, &also));
		*missing = *missing < also ? *missing : also;
	}
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
	if (!t->like.probe || !t->rows || (t->stacks && !t->names))
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
	const struct dp_agg like = {.what = asked->what, .buckets = asked->buckets};
	struct dp_tally *t = calloc(1, sizeof(*t));
	if (!t)
		return dp_error_nomem();
	t->asked = asked;
	t->of = *of;
	t->like.asked = *asked;
	t->group = dp_aggs_grouped(&t->like);
	t->stacks = asked->by && !strcmp(asked->by, "backtrace");
	t->want.words = dp_agg_words(&like);
	t->want.greatest = asked->what & (DP_AGG_MIN | DP_AGG_MAX) ? DP_AGG_WORD_MAX : t->want.words;
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
	dp_view_expr_fini(&t->value);
	dp_view_expr_fini(&t->by);
	dp_ended_rows_destroy(t->rows);
	dp_frame_names_destroy(t->names);
	for (size_t i = 0; i < t->nstacks; i++)
		free(t->stack[i].frame);
	for (size_t i = 0; i < t->nwords; i++)
		free(t->word[i]);
	free(t->stack);
	free(t->word);
	free(t->shown);
	free(t->like.probe);
	free(t);
	return NULL;
}

/* ---- keys ------------------------------------------------------------------------------------------------------------------ */

/* The number of a process's name, from 1; 0: out of memory. */
static uint64_t number_of(struct dp_tally *t, const char *word)
{
	for (size_t i = 0; i < t->nwords; i++)
		if (!strcmp(t->word[i], word))
			return i + 1;
	char **grown = reallocarray(t->word, t->nwords + 1, sizeof(*grown));
	t->word = grown ? grown : t->word;
	char *copy = grown ? strdup(word) : NULL;
	if (!copy)
		return 0;
	t->word[t->nwords] = copy;
	return ++t->nwords;
}

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

/* The number of the event's backtrace; 0: it has none, or there is no room. */
static uint64_t stack_of(struct dp_tally *t, const struct dp_view_values *v)
{
	uint64_t frame[UINT8_MAX];
	unsigned most = 0;
	const struct dp_field_value *b = backtrace_of(v, &most);
	if (!b || !v->event->image || b->n > UINT8_MAX)
		return 0;
	memcpy(frame, b->bytes, b->n * sizeof(*frame));
	const struct dp_frames_seen seen = {frame, (unsigned)b->n, most};
	const uint64_t number = dp_frame_names_number(t->names, v->event->image, &seen);
	if (number > t->nstacks && !keep_stack(t, v, &seen))
		return 0;
	return number;
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
		ret->group = number_of(t, e->comm ? e->comm : "");
	if (t->group != DP_GROUP_NONE || !t->asked->by)
		return true;
	ret->keyed = 1;
	if (t->stacks)
		return (ret->key = stack_of(t, v));
	if (!dp_view_eval(&t->by, v, &key))
		return false;
	ret->key = (uint64_t)key;
	return true;
}

/* ---- cells ----------------------------------------------------------------------------------------------------------------- */

static unsigned log2_bucket(int64_t value)
{
	return value < 0 ? DP_AGG_LOG2_WORDS - 1 : value ? 64u - (unsigned)__builtin_clzll((uint64_t)value) : 0;
}

static unsigned linear_bucket(const struct dp_asked *a, int64_t value)
{
	if (value < a->low)
		return 0;
	const uint64_t i = ((uint64_t)value - (uint64_t)a->low) / a->step;
	return i < a->buckets ? (unsigned)i + 1 : a->buckets + 1;
}

/* As the stubs count (aggregate_cell.c). */
static void count(const struct dp_tally *t, uint64_t *cells, int64_t value)
{
	const struct dp_asked *a = t->asked;
	const uint64_t top = UINT64_C(1) << 63;
	if (a->what & DP_AGG_LOG2) {
		cells[log2_bucket(value)]++;
	} else if (a->what & DP_AGG_LINEAR) {
		cells[linear_bucket(a, value)]++;
	} else {
		cells[DP_AGG_WORD_COUNT]++;
		if (a->what & DP_AGG_SUM)
			cells[DP_AGG_WORD_SUM] += (uint64_t)value;
		if (a->what & DP_AGG_MAX)
			dp_cells_add(&t->want, cells, DP_AGG_WORD_MAX, (uint64_t)value ^ top);
		if (a->what & DP_AGG_MIN)
			dp_cells_add(&t->want, cells, DP_AGG_WORD_MIN, ~((uint64_t)value ^ top));
	}
}

static bool is_counted(const struct dp_tally *t, size_t class)
{
	return (!t->value.expr || t->value.expr[class]) && (!t->by.expr || t->by.expr[class]);
}

bool dp_tally_event(struct dp_tally *t, const struct dp_view_values *values)
{
	struct dp_row_key key;
	int64_t value = 0;
	if (!is_counted(t, values->event->probe))
		return true;
	t->pid = !t->pid || t->pid == values->event->pid ? values->event->pid : -1;
	if (!key_of(t, values, &key) || (t->asked->value && !dp_view_eval(&t->value, values, &value))) {
		t->failed++;
		return true;
	}
	struct dp_ended_row *row = dp_ended_rows_get(t->rows, &key);
	if (!row)
		return false;
	count(t, row->cells, value);
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
	for (size_t i = 0; ok && !t->asked->by && i < t->of.n; i++) {
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
	        .word = t->group == DP_GROUP_COMM && row->key.group ? t->word[row->key.group - 1] : NULL,
	        .cells = cells,
	        .hits = dp_agg_hits(t->asked->what, cells, t->want.words),
	};
	if (t->stacks && row->key.keyed)
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
	*ret = (struct dp_aggs_shown){
	        .what = a->what,
	        .average = a->average,
	        .value = a->value,
	        .by = a->by,
	        .ns = a->value && !strcmp(a->value, "duration"),
	        .low = a->low,
	        .step = a->step,
	        .buckets = a->buckets,
	        .top = a->top,
	        .seconds = seconds,
	        .row = t->shown,
	        .n = n,
	};
	return true;
}

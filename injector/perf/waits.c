/* SPDX-License-Identifier: MIT */
/*
 * A thread's records are: its stack, out, in, its stack, out, in. Each may be missing, because a ring was full. A stack belongs
 * to the out that follows it, and an out to the in that follows it, only if nothing can be missing between the two: better no
 * wait than a wrong one.
 */
#include "injector/perf/waits.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define GAPS_MOST 64u

struct thread {
	pid_t tid;
	bool off, preempted;
	uint64_t off_ns, stack_ns;
	struct dp_wait_stack *stack; /* of the next out, or of the wait */
	UT_hash_handle hh;
};
struct queued {
	struct dp_switch s;
	uint64_t number; /* records of the same time keep their order */
};
struct gap {
	uint64_t from_ns, to_ns;
};

struct dp_waits {
	struct thread *thread;
	struct queued *queue;
	size_t n, capacity;
	struct gap gap[GAPS_MOST];
	size_t ngaps;
	uint64_t number, begun_ns;
	struct dp_waits_stats stats;
	/* Used while records are gone through. */
	dp_wait_each *each;
	void *data;
};

struct dp_error *dp_waits_create(struct dp_waits **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : dp_error_nomem();
}

struct dp_waits *dp_waits_destroy(struct dp_waits *w)
{
	struct thread *t, *next;
	if (!w)
		return NULL;
	HASH_ITER(hh, w->thread, t, next)
	{
		HASH_DEL(w->thread, t);
		free(t->stack);
		free(t);
	}
	for (size_t i = 0; i < w->n; i++)
		free(w->queue[i].s.stack);
	free(w->queue);
	free(w);
	return NULL;
}

void dp_waits_begin(struct dp_waits *w, uint64_t ns)
{
	w->begun_ns = ns;
}

/* ---- what may be missing -------------------------------------------------------------------------------------------------- */

static void add_gap(struct dp_waits *w, uint64_t from_ns, uint64_t to_ns)
{
	if (w->ngaps == GAPS_MOST) { /* the two oldest, and what is between them, become one */
		w->gap[1].from_ns = w->gap[0].from_ns < w->gap[1].from_ns ? w->gap[0].from_ns : w->gap[1].from_ns;
		w->gap[1].to_ns = w->gap[0].to_ns > w->gap[1].to_ns ? w->gap[0].to_ns : w->gap[1].to_ns;
		memmove(w->gap, w->gap + 1, --w->ngaps * sizeof(*w->gap));
	}
	w->gap[w->ngaps++] = (struct gap){from_ns, to_ns};
}

static bool is_whole(const struct dp_waits *w, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < w->ngaps; i++)
		if (w->gap[i].from_ns < to_ns && from_ns < w->gap[i].to_ns)
			return false;
	return from_ns <= to_ns;
}

/* ---- one record ----------------------------------------------------------------------------------------------------------- */

static struct thread *find(const struct dp_waits *w, pid_t tid)
{
	struct thread *found = NULL;
	HASH_FIND_INT(w->thread, &tid, found);
	return found;
}

static struct thread *add_thread(struct dp_waits *w, pid_t tid)
{
	struct thread *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->tid = tid;
	HASH_ADD_INT(w->thread, tid, t);
	if (t->hh.tbl)
		return t;
	free(t);
	return NULL;
}

static void drop_stack(struct thread *t)
{
	free(t->stack);
	t->stack = NULL;
}

/* It runs: what is known of its last wait is over. */
static void forget(struct dp_waits *w, struct thread *t)
{
	w->stats.broken += t->off;
	t->off = false;
	drop_stack(t);
}

static void on_stack(struct dp_waits *w, struct thread *t, const struct dp_switch *s)
{
	forget(w, t);
	t->stack = s->stack;
	t->stack_ns = s->ns;
}

static void on_out(struct dp_waits *w, struct thread *t, const struct dp_switch *s)
{
	if (t->off || (t->stack && !is_whole(w, t->stack_ns, s->ns)))
		forget(w, t);
	t->off = true;
	t->preempted = s->kind == DP_SWITCH_PREEMPTED;
	t->off_ns = s->ns;
}

static void pass_on(const struct dp_waits *w, const struct thread *t, uint64_t ns, bool open)
{
	const struct dp_wait wait = {
	        .tid = t->tid, .from_ns = t->off_ns, .to_ns = ns, .preempted = t->preempted, .open = open, .stack = t->stack};
	w->each(&wait, w->data);
}

static void on_in(struct dp_waits *w, struct thread *t, const struct dp_switch *s, bool fresh)
{
	const bool whole = t->off && is_whole(w, t->off_ns, s->ns);
	if (whole)
		pass_on(w, t, s->ns, false);
	if (fresh && w->begun_ns && s->ns > w->begun_ns) {
		w->stats.early++;
		w->stats.early_ns += s->ns - w->begun_ns;
	}
	w->stats.broken += !t->off && !fresh && t->stack; /* its out is missing */
	t->off = t->off && !whole;
	forget(w, t);
}

static void process(struct dp_waits *w, const struct dp_switch *s)
{
	struct thread *t = s->kind == DP_SWITCH_LOST ? NULL : find(w, s->tid);
	const bool fresh = !t;
	if (s->kind == DP_SWITCH_LOST)
		return; /* known since it was added */
	t = t ? t : add_thread(w, s->tid);
	if (!t) {
		free(s->stack);
		return;
	}
	switch (s->kind) {
	case DP_SWITCH_STACK:
		on_stack(w, t, s);
		break;
	case DP_SWITCH_OUT:
	case DP_SWITCH_PREEMPTED:
		on_out(w, t, s);
		break;
	case DP_SWITCH_IN:
		on_in(w, t, s, fresh);
		break;
	case DP_SWITCH_BORN: /* a thread of that id that was there before has ended */
	case DP_SWITCH_ENDED:
		forget(w, t);
		break;
	case DP_SWITCH_LOST:
		break;
	}
}

/* ---- all of them ---------------------------------------------------------------------------------------------------------- */

void dp_waits_add(struct dp_waits *w, const struct dp_switch *s)
{
	if (s->kind == DP_SWITCH_LOST)
		add_gap(w, s->from_ns, s->ns);
	if (w->n == w->capacity) {
		const size_t capacity = w->capacity ? 2 * w->capacity : 256;
		struct queued *grown = realloc(w->queue, capacity * sizeof(*grown));
		if (!grown) { /* nothing may be paired across it */
			add_gap(w, s->ns - 1, s->ns + 1);
			free(s->stack);
			return;
		}
		w->queue = grown;
		w->capacity = capacity;
	}
	w->queue[w->n++] = (struct queued){*s, w->number++};
}

static int by_time(const void *x, const void *y)
{
	const struct queued *a = x, *b = y;
	if (a->s.ns != b->s.ns)
		return a->s.ns < b->s.ns ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

void dp_waits_settle(struct dp_waits *w, uint64_t until_ns, dp_wait_each *each, void *data)
{
	size_t done = 0;
	w->each = each;
	w->data = data;
	if (w->n)
		qsort(w->queue, w->n, sizeof(*w->queue), by_time);
	while (done < w->n && w->queue[done].s.ns <= until_ns)
		process(w, &w->queue[done++].s);
	w->n -= done;
	if (done)
		memmove(w->queue, w->queue + done, w->n * sizeof(*w->queue));
}

void dp_waits_end(struct dp_waits *w, uint64_t ns, dp_wait_each *each, void *data)
{
	dp_waits_settle(w, ns, each, data);
	for (struct thread *t = w->thread; t; t = t->hh.next) {
		if (t->off && is_whole(w, t->off_ns, ns)) {
			pass_on(w, t, ns, true);
			t->off = false;
		}
		forget(w, t);
	}
}

bool dp_waits_knows(const struct dp_waits *w, pid_t tid)
{
	return find(w, tid);
}

void dp_waits_stats(const struct dp_waits *w, struct dp_waits_stats *ret)
{
	*ret = w->stats;
}

/* SPDX-License-Identifier: MIT */
/* What matters first: why it crashed and where in the program's own code, and what modules found out. */
#include "base/path.h"
#include "output/snapshot/show_internal.h"

#include <string.h>

enum { NOTES_MOST = 10 };

static bool is_loud(const struct dp_snap_note *n)
{
	return n->kind == DP_NOTE_WARNING || n->kind == DP_NOTE_CRITICAL;
}

bool dp_show_is_loud(const struct dp_snap_note *list)
{
	for (; list; list = list->next)
		if (is_loud(list))
			return true;
	return false;
}

/* "strcmp, called by by_id (a=1) at crash.c:9" */
static void put_where(struct dp_shower *x, const struct dp_snap_thread *t)
{
	const struct dp_snap_frame *own = dp_show_own(t), *in = t->frames;
	if (!own || !in || !in->symbol)
		return;
	dp_put_str(&x->b, "  where        ");
	if (own != in) {
		dp_show_put(x, in->symbol);
		dp_put_str(&x->b, ", called by ");
	}
	dp_show_colored(x, DP_SHOW_NAME, own->symbol);
	if (own->path) {
		dp_put_str(&x->b, " at ");
		dp_show_put(x, own->path);
		if (own->line > 0)
			dp_buf_printf(&x->b, ":%d", own->line);
	}
	dp_buf_printf(&x->b, ", frame #%u of thread %d\n", own->index, t->tid);
}

static void put_note(struct dp_shower *x, const struct dp_snap_note *n, const struct dp_snap_thread *t,
                     const struct dp_snap_frame *f)
{
	const bool critical = n->kind == DP_NOTE_CRITICAL;
	dp_put_str(&x->b, "  ");
	dp_put_str(&x->b, !x->o->color ? "" : critical ? DP_SHOW_RED : DP_SHOW_YELLOW);
	dp_put_str(&x->b, critical ? "! critical: " : "! warning: ");
	dp_buf_printf(&x->b, "thread %d", t->tid);
	if (f)
		dp_buf_printf(&x->b, ", frame #%u", f->index);
	dp_put_str(&x->b, ": ");
	dp_show_put(x, n->text);
	dp_put_str(&x->b, x->o->color ? DP_SHOW_RESET "\n" : "\n");
}

static void count_note(struct dp_shower *x, const struct dp_snap_note *list, const struct dp_snap_thread *t,
                       const struct dp_snap_frame *f, size_t *n)
{
	for (; list; list = list->next)
		if (is_loud(list) && ++*n <= NOTES_MOST)
			put_note(x, list, t, f);
}

/* Modules that have something to say of the whole say it there: what they also say of threads follows at these. */
static void put_threads_notes(struct dp_shower *x)
{
	size_t n = 0;
	for (const struct dp_snap_thread *t = x->s->threads; t; t = t->next) {
		count_note(x, t->notes, t, NULL, &n);
		for (const struct dp_snap_frame *f = t->frames; f; f = f->next)
			count_note(x, f->notes, t, f, &n);
	}
	if (n > NOTES_MOST)
		dp_buf_printf(&x->b, "  ! %zu more annotations at their threads\n", n - NOTES_MOST);
}

void dp_show_verdict(struct dp_shower *x)
{
	const struct dp_snap_thread *t = x->s->threads;
	if (t && t->is_fault && t->fault_reason) {
		dp_put_str(&x->b, "  why          ");
		dp_show_colored(x, DP_SHOW_RED, t->fault_reason);
		dp_put_str(&x->b, "\n");
	}
	if (t && t->is_fault)
		put_where(x, t);
	dp_show_notes(x, x->s->notes, 2);
	if (!dp_show_is_loud(x->s->notes))
		put_threads_notes(x);
}

/* SPDX-License-Identifier: MIT */
#include "output/calls/call_stream.h"

#include "output/format/put.h"

#include <stdlib.h>

struct dp_call_stream {
	struct dp_call_pairs *pairs;
	dp_call_shown_fn show;
	void *data;
	uint64_t now, next; /* the newest time; when to look for calls that last */
};

struct dp_call_stream *dp_call_stream_create(const struct dp_event_class *classes, size_t n, dp_call_shown_fn show, void *data)
{
	struct dp_call_stream *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct dp_call_stream){.pairs = dp_call_pairs_create(classes, n), .show = show, .data = data};
	return c->pairs ? c : dp_call_stream_destroy(c);
}

struct dp_call_stream *dp_call_stream_destroy(struct dp_call_stream *c)
{
	if (c)
		dp_call_pairs_destroy(c->pairs);
	free(c);
	return NULL;
}

struct dp_call_pairs *dp_call_stream_pairs(struct dp_call_stream *c)
{
	return c->pairs;
}

/* ---- lines ----------------------------------------------------------------------------------------------------------- */

void dp_put_call_shown(struct dp_buf *b, const struct dp_call_shown *s, const char *color, const char *reset)
{
	if (s->form == DP_CALL_RESUMED)
		dp_put_str(b, "<... ");
	dp_put_str(b, color);
	dp_put_call_name(b, &s->line);
	dp_put_str(b, reset);
	dp_put_str(b, s->form == DP_CALL_RESUMED ? " resumed>" : "(");
	const unsigned to = s->form == DP_CALL_UNFINISHED ? dp_call_first_late(s->line.nr) : DP_CALL_ARGS;
	const size_t start = b->len;
	dp_put_call_args(b, &s->line, s->from, to);
	if (s->form == DP_CALL_UNFINISHED) {
		dp_put_str(b, b->len > start && to < DP_CALL_ARGS ? ", <unfinished ...>"
		              : b->len > start                    ? " <unfinished ...>"
		                                                  : "<unfinished ...>");
		return;
	}
	dp_put_str(b, ")");
	dp_put_call_result(b, &s->line);
	dp_put_call_duration(b, &s->line);
}

static void show_unfinished(struct dp_call_stream *c, struct dp_held_call *h)
{
	struct dp_call_seen seen;
	if (h->shown)
		return;
	dp_call_pairs_see(c->pairs, &h->e, &seen);
	const struct dp_call_shown s = {
	        .at = &h->e, .rest = &h->e, .form = DP_CALL_UNFINISHED, .line = {.entry = &seen, .nr = seen.nr}};
	h->shown = 1 + dp_call_first_late(seen.nr);
	c->show(&s, c->data);
}

/* A call that does not come back: exit. */
static void show_last(struct dp_call_stream *c, const struct dp_event *e, const struct dp_call_seen *seen)
{
	c->show(&(struct dp_call_shown){.at = e, .rest = e, .line = {.entry = seen, .nr = seen->nr}}, c->data);
}

/* ---- events ---------------------------------------------------------------------------------------------------------- */

static void on_entry(struct dp_call_stream *c, const struct dp_event *e)
{
	struct dp_call_seen seen;
	struct dp_held_call *outer = dp_call_pairs_newest(c->pairs, e);
	if (outer)
		show_unfinished(c, outer);
	dp_call_pairs_see(c->pairs, e, &seen);
	if (dp_call_never_returns(seen.nr))
		show_last(c, e, &seen);
	else
		dp_call_pairs_hold(c->pairs, e, seen.nr);
}

static void show_pair(struct dp_call_stream *c, const struct dp_event *e, const struct dp_call_seen *exit,
                      const struct dp_held_call *h, const struct dp_call_seen *entry)
{
	const struct dp_call_shown s = {
	        .at = h->shown ? e : &h->e,
	        .rest = e,
	        .form = h->shown ? DP_CALL_RESUMED : DP_CALL_WHOLE,
	        .from = h->shown ? h->shown - 1 : 0,
	        .line = dp_call_line_of(e, exit, h, entry),
	};
	c->show(&s, c->data);
}

/* Its entry was before the first event, is lost, or was not asked for. */
static void show_exit(struct dp_call_stream *c, const struct dp_event *e, const struct dp_call_seen *exit)
{
	struct dp_call_shown s = {.at = e, .rest = e, .line = dp_call_line_of(e, exit, NULL, NULL)};
	if (dp_call_pairs_has_entry(c->pairs, e->probe)) {
		s.form = DP_CALL_RESUMED;
		s.from = dp_call_first_late(exit->nr);
	}
	c->show(&s, c->data);
}

static void on_exit_of(struct dp_call_stream *c, const struct dp_event *e)
{
	struct dp_call_seen exit, entry;
	dp_call_pairs_see(c->pairs, e, &exit);
	struct dp_held_call *newest = dp_call_pairs_newest(c->pairs, e);
	const struct dp_held_call *h = dp_call_pairs_match(c->pairs, e, &exit, &entry);
	if (newest && newest != h)
		show_unfinished(c, newest);
	if (h)
		show_pair(c, e, &exit, h, &entry);
	else
		show_exit(c, e, &exit);
	dp_call_pairs_end(c->pairs, h);
}

bool dp_call_stream_event(struct dp_call_stream *c, const struct dp_event *e)
{
	if (e->ns > c->now)
		c->now = e->ns;
	if (c->now >= c->next)
		dp_call_stream_until(c, c->now);
	if (dp_call_pairs_takes(c->pairs, e->probe)) {
		(dp_call_pairs_is_exit(c->pairs, e->probe) ? on_exit_of : on_entry)(c, e);
		return true;
	}
	struct dp_held_call *newest = dp_call_pairs_newest(c->pairs, e);
	if (newest)
		show_unfinished(c, newest);
	return false;
}

struct lasting {
	struct dp_call_stream *c;
	uint64_t before, next;
};

static void show_lasting(struct dp_held_call *h, void *data)
{
	struct lasting *l = data;
	if (h->e.ns <= l->before)
		show_unfinished(l->c, h);
	else if (!h->shown && h->e.ns + DP_CALL_LASTS_NS < l->next)
		l->next = h->e.ns + DP_CALL_LASTS_NS;
}

void dp_call_stream_until(struct dp_call_stream *c, uint64_t ns)
{
	struct lasting l = {c, ns > DP_CALL_LASTS_NS ? ns - DP_CALL_LASTS_NS : 0, ns + DP_CALL_LASTS_NS};
	if (ns < c->next)
		return;
	dp_call_pairs_each(c->pairs, show_lasting, &l);
	c->next = l.next;
}

void dp_call_stream_end(struct dp_call_stream *c)
{
	struct lasting l = {c, UINT64_MAX, UINT64_MAX};
	dp_call_pairs_each(c->pairs, show_lasting, &l);
}

struct forgotten {
	struct dp_call_stream *c;
	const struct dp_image *image;
};

static void forget(struct dp_held_call *h, void *data)
{
	const struct forgotten *f = data;
	if (h->e.image == f->image)
		show_unfinished(f->c, h);
	for (; h; h = h->outer)
		if (h->e.image == f->image)
			h->e.image = NULL;
}

void dp_call_stream_forget(struct dp_call_stream *c, const struct dp_image *image)
{
	dp_call_pairs_each(c->pairs, forget, &(struct forgotten){c, image});
}

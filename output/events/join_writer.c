/* SPDX-License-Identifier: MIT */
/* A writer that shows whole calls: passes on what joiner.c has joined. */
#include "output/events/writer.h"

#include <stdlib.h>

struct call_writer {
	struct dp_writer base;
	struct dp_joiner *calls;
	struct dp_writer *to;
};

static void take_error(struct call_writer *w, struct dp_error *err)
{
	if (err)
		dp_writer_fail(&w->base, err);
}

static void call_event(struct dp_writer *base, const struct dp_event *e)
{
	struct call_writer *w = (struct call_writer *)base;
	struct dp_event whole;
	if (dp_joiner_event(w->calls, e, &whole))
		dp_writer_recorded(w->to, &whole);
}

static void call_known(struct dp_writer *base, unsigned i)
{
	struct call_writer *w = (struct call_writer *)base;
	take_error(w, dp_joiner_known(w->calls, i));
	dp_writer_class(w->to, i);
}

static void call_note(struct dp_writer *base, const char *text)
{
	dp_writer_note(((struct call_writer *)base)->to, text);
}

static void call_gap(struct dp_writer *base)
{
	dp_writer_gap(((struct call_writer *)base)->to);
}

static void call_forget(struct dp_writer *base, const struct dp_image *image)
{
	dp_writer_forget(((struct call_writer *)base)->to, image);
}

static void call_until(struct dp_writer *base, uint64_t ns)
{
	dp_writer_until(((struct call_writer *)base)->to, ns);
}

static void call_flush(struct dp_writer *base)
{
	struct call_writer *w = (struct call_writer *)base;
	take_error(w, dp_writer_flush(w->to));
}

static void call_fini(struct dp_writer *base)
{
	struct call_writer *w = (struct call_writer *)base;
	take_error(w, dp_writer_close(w->to));
	dp_joiner_destroy(w->calls);
}

static const struct dp_writer_ops ops = {
        .event = call_event,
        .known = call_known,
        .note = call_note,
        .gap = call_gap,
        .forget = call_forget,
        .until = call_until,
        .flush = call_flush,
        .fini = call_fini,
};

struct dp_error *dp_join_writer_create(struct dp_joiner *c, const struct dp_event_class *classes, size_t n, struct dp_writer *to,
                                       struct dp_writer **ret)
{
	struct call_writer *w = calloc(1, sizeof(*w));
	if (!w) {
		dp_error_destroy(dp_writer_close(to));
		dp_joiner_destroy(c);
		return dp_error_nomem();
	}
	w->base = (struct dp_writer){.ops = &ops, .classes = classes, .n = n};
	w->calls = c;
	w->to = to;
	*ret = &w->base;
	return NULL;
}

const struct dp_joiner *dp_writer_joiner(const struct dp_writer *w)
{
	return w && w->ops == &ops ? ((const struct call_writer *)w)->calls : NULL;
}

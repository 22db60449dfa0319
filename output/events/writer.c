/* SPDX-License-Identifier: MIT */
#include "output/events/writer.h"

#include <stdlib.h>
#include <string.h>

void dp_writer_fail(struct dp_writer *w, struct dp_error *err)
{
	if (w->error)
		dp_error_destroy(err);
	else
		w->error = err;
}

/* ---- limits on strings --------------------------------------------------------------------------------------------------- */

#define DOTS "..."

struct shortened {
	const uint8_t *from; /* not copied yet */
	uint8_t *to;
};

/* str(p, N) reserves room for N characters and the dots. So up to three more arrive complete, and must be cut. */
static size_t characters(const struct dp_field *f)
{
	return f->type == DP_TYPE_STRING && f->expr && f->size > sizeof(DOTS) ? f->size - sizeof(DOTS) : SIZE_MAX;
}

static bool has_limits(const struct dp_fields *fields)
{
	for (size_t i = 0; i < fields->n; i++)
		if (characters(&fields->field[i]) != SIZE_MAX)
			return true;
	return false;
}

static void shorten_field(const struct dp_field *f, const struct dp_field_value *v, void *data)
{
	struct shortened *s = data;
	const size_t most = characters(f);
	if (most == SIZE_MAX || v->n <= most)
		return;
	const size_t n = (size_t)(v->bytes - s->from) + most;
	memcpy(s->to, s->from, n);
	memcpy(s->to + n, DOTS, sizeof(DOTS));
	s->to += n + sizeof(DOTS);
	s->from = v->bytes + v->n + 1;
}

/* Cuts strings of a checked payload to N characters and the dots. No field becomes longer than allowed. */
static size_t shorten(const struct dp_decoder *d, const uint8_t *payload, size_t len, uint8_t ret[DP_RECORD_MAX])
{
	struct shortened s = {payload, ret};
	dp_decoder_run(d, payload, len, shorten_field, &s);
	const size_t left = (size_t)(payload + len - s.from);
	memcpy(s.to, s.from, left);
	return (size_t)(s.to - ret) + left;
}

/* ---- events ------------------------------------------------------------------------------------------------------------ */

/* What is known of the class of an event; NULL: out of memory. */
static const struct dp_writer_class *known_class(struct dp_writer *w, unsigned i)
{
	if (!w->known && !(w->known = calloc(w->n, sizeof(*w->known)))) {
		dp_writer_fail(w, dp_error_nomem());
		return NULL;
	}
	struct dp_writer_class *c = &w->known[i];
	const struct dp_fields *fields = w->classes[i].fields;
	if (!c->decoder.fields) {
		dp_decoder_init(&c->decoder, fields);
		c->has_limits = has_limits(fields) && dp_fields_max_payload(fields) <= DP_RECORD_MAX;
	}
	return c;
}

/*
 * The target may still be able to write the payload's memory. So it is copied first and checked then, and cannot change while
 * writers use it.
 */
bool dp_writer_check(struct dp_writer *w, const struct dp_event *event, struct dp_checked *ret)
{
	const struct dp_writer_class *class = known_class(w, event->probe);
	if (!class || event->len > sizeof(ret->copy))
		return false;
	if (event->len)
		memcpy(ret->copy, event->payload, event->len);
	ret->payload = ret->copy;
	ret->len = dp_decoder_length(&class->decoder, ret->copy, event->len);
	if (ret->len == SIZE_MAX)
		return false;
	if (class->has_limits) {
		ret->len = shorten(&class->decoder, ret->copy, ret->len, ret->shorter);
		ret->payload = ret->shorter;
	}
	return true;
}

size_t dp_writer_fixed(const struct dp_fields *fields)
{
	struct dp_decoder d;
	dp_decoder_init(&d, fields);
	return d.fixed;
}

void dp_writer_event(struct dp_writer *w, const struct dp_event *event)
{
	struct dp_checked checked;
	if (w->error || event->probe >= w->n || !dp_writer_check(w, event, &checked))
		return;
	struct dp_event e = *event;
	e.payload = checked.payload;
	e.len = checked.len;
	w->ops->event(w, &e);
}

void dp_writer_recorded(struct dp_writer *w, const struct dp_event *event)
{
	if (!w->error && event->probe < w->n && known_class(w, event->probe))
		w->ops->event(w, event);
}

void dp_writer_batch(struct dp_writer *w, const struct dp_event_batch *batch)
{
	if (!w->error && w->ops->batch)
		w->ops->batch(w, batch);
}

void dp_writer_class(struct dp_writer *w, unsigned i)
{
	if (w->known)
		w->known[i] = (struct dp_writer_class){0};
	if (!w->error && w->ops->known)
		w->ops->known(w, i);
}

void dp_writer_note(struct dp_writer *w, const char *text)
{
	if (!w->error && w->ops->note)
		w->ops->note(w, text);
}

void dp_writer_lost(struct dp_writer *w, uint64_t total_lost)
{
	if (w->ops->lost)
		w->ops->lost(w, total_lost);
}

void dp_writer_gap(struct dp_writer *w)
{
	if (w->ops->gap)
		w->ops->gap(w);
}

void dp_writer_forget(struct dp_writer *w, const struct dp_image *image)
{
	if (w->ops->forget)
		w->ops->forget(w, image);
}

void dp_writer_until(struct dp_writer *w, uint64_t ns)
{
	if (!w->error && w->ops->until)
		w->ops->until(w, ns);
}

struct dp_error *dp_writer_flush(struct dp_writer *w)
{
	if (!w->error)
		w->ops->flush(w);
	/* The error itself is kept for dp_writer_close(). */
	if (!w->error)
		return NULL;
	struct dp_error *copy = dp_error(w->error->tag, "%s", w->error->message);
	copy->sys = w->error->sys;
	return copy;
}

void dp_writer_show_sources(struct dp_writer *w, struct dp_source_lines *lines, bool patient)
{
	w->sources = lines;
	w->patient = patient;
}

bool dp_writer_full(const struct dp_writer *w)
{
	return w->full;
}

bool dp_writer_failed(const struct dp_writer *w)
{
	return w->error;
}

struct dp_error *dp_writer_close(struct dp_writer *w)
{
	if (!w)
		return NULL;
	if (!w->error && w->ops->end)
		w->ops->end(w);
	if (!w->error)
		w->ops->flush(w);
	w->ops->fini(w);
	struct dp_error *err = w->error;
	free(w->known);
	free(w);
	return err;
}

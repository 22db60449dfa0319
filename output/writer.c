/* SPDX-License-Identifier: MIT */
#include "output/writer.h"
#include "agent/abi.h"

#include <stdlib.h>
#include <string.h>

void dp_writer_fail(struct dp_writer *w, struct dp_error *err)
{
	if (w->error)
		dp_error_destroy(err);
	else
		w->error = err;
}

/*
 * The payload may lie in memory that the target can still write: it is copied first and checked then, so that what the
 * makers see cannot change under them.
 */
void dp_writer_event(struct dp_writer *w, const struct dp_event *event)
{
	uint8_t copy[DP_RECORD_MAX];
	if (w->error || event->probe >= w->n || event->len > sizeof(copy))
		return;
	if (event->len)
		memcpy(copy, event->payload, event->len);
	struct dp_event checked = *event;
	checked.payload = copy;
	checked.len = dp_fields_payload_length(w->classes[event->probe].fields, copy, event->len);
	if (checked.len != SIZE_MAX)
		w->ops->event(w, &checked);
}

void dp_writer_class(struct dp_writer *w, unsigned i)
{
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

struct dp_error *dp_writer_flush(struct dp_writer *w)
{
	if (!w->error)
		w->ops->flush(w);
	/* The error itself stays for dp_writer_close(). */
	return w->error ? dp_error(w->error->tag, "%s", w->error->message) : NULL;
}

struct dp_error *dp_writer_close(struct dp_writer *w)
{
	if (!w)
		return NULL;
	if (!w->error)
		w->ops->flush(w);
	w->ops->fini(w);
	struct dp_error *err = w->error;
	free(w);
	return err;
}

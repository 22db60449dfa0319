/* SPDX-License-Identifier: MIT */
/* The base of all writers: a method table, the event classes, and the first error. Writers embed it as their first member. */
#ifndef DP_OUTPUT_EVENTS_WRITER_H
#define DP_OUTPUT_EVENTS_WRITER_H

#include "agent/abi.h"
#include "output/output.h"

struct dp_writer_ops {
	/* The payload is a checked private copy, cut to the size of its fields and to the requested string lengths. */
	void (*event)(struct dp_writer *w, const struct dp_event *event);
	/* As it comes from the target: dp_writer_check() makes such a copy. NULL: the writer needs the order of time. */
	void (*batch)(struct dp_writer *w, const struct dp_event_batch *batch);
	void (*known)(struct dp_writer *w, unsigned i); /* NULL: not needed */
	void (*note)(struct dp_writer *w, const char *text);
	void (*lost)(struct dp_writer *w, uint64_t total);
	void (*gap)(struct dp_writer *w);                /* NULL: it relates no event to another */
	void (*forget)(struct dp_writer *w, const struct dp_image *image); /* NULL: it keeps no event */
	void (*until)(struct dp_writer *w, uint64_t ns); /* NULL: it writes each event when it comes */
	void (*end)(struct dp_writer *w);                /* before the last flush; NULL: nothing is held back */
	void (*flush)(struct dp_writer *w);
	/* Called after a last flush: releases what the writer owns, but not `w`. */
	void (*fini)(struct dp_writer *w);
};

struct dp_writer {
	const struct dp_writer_ops *ops;
	const struct dp_event_class *classes;
	size_t n;
	struct dp_error *error;          /* the first one; nothing is written after it */
	struct dp_writer_class *known;   /* of each class, from its first event on; NULL before the first of all */
	bool full;                       /* it has all events that it may take */
	struct dp_source_lines *sources; /* of frames; NULL: none. Borrowed */
	bool patient;
};

/* What the events of a class have in common. */
struct dp_writer_class {
	struct dp_decoder decoder; /* .fields is NULL before the first event */
	bool has_limits;           /* a field may have to be cut */
};
/* During `event`: how the payload is decoded. */
static inline const struct dp_decoder *dp_writer_decoder(const struct dp_writer *w, const struct dp_event *e)
{
	return &w->known[e->probe].decoder;
}

struct dp_checked {
	const uint8_t *payload; /* in one of the copies */
	size_t len;
	uint8_t copy[DP_RECORD_MAX], shorter[DP_RECORD_MAX];
};
/* Of an event's payload. False if it does not fit the fields. */
bool dp_writer_check(struct dp_writer *w, const struct dp_event *event, struct dp_checked *ret);
/* The length of all payloads of these fields, if that is fixed; else SIZE_MAX. */
size_t dp_writer_fixed(const struct dp_fields *fields);

/* Keeps `err` if the writer has no error yet; else drops it. */
void dp_writer_fail(struct dp_writer *w, struct dp_error *err);

#endif

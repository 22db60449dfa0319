/* SPDX-License-Identifier: MIT */
/* The base of all writers: a method table, the event classes, and the first error. Writers embed it as their first member. */
#ifndef DP_OUTPUT_EVENTS_WRITER_H
#define DP_OUTPUT_EVENTS_WRITER_H

#include "output/output.h"

struct dp_writer_ops {
	/* The payload is a checked private copy, cut to the size of its fields and to the requested string lengths. */
	void (*event)(struct dp_writer *w, const struct dp_event *event);
	void (*known)(struct dp_writer *w, unsigned i); /* NULL: not needed */
	void (*note)(struct dp_writer *w, const char *text);
	void (*lost)(struct dp_writer *w, uint64_t total);
	void (*flush)(struct dp_writer *w);
	/* Called after a last flush: releases what the writer owns, but not `w`. */
	void (*fini)(struct dp_writer *w);
};

struct dp_writer {
	const struct dp_writer_ops *ops;
	const struct dp_event_class *classes;
	size_t n;
	struct dp_error *error; /* the first one; nothing is written after it */
};

/* Keeps `err` if the writer has no error yet; else drops it. */
void dp_writer_fail(struct dp_writer *w, struct dp_error *err);

#endif

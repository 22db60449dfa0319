/* SPDX-License-Identifier: MIT */
/*
 * What a trace keeps for `dynprobe view`, in its folder dynprobe/ (readers of CTF skip folders): how events are shown, and what
 * the code was called that backtraces pass through. docs/trace-format.md has the formats. Both files are JSON.
 *
 * classes.json describes the event classes. It is replaced as a whole, so a reader never sees a part of it.
 *
 * names has a line for each thing that is seen for the first time: a process, a state of its mappings, an address. Lines are
 * appended, so a recorder that is killed loses only the last ones. Names are formed when an address is first seen: the module may
 * be gone later.
 */
#ifndef DP_OUTPUT_CTF_SIDECAR_H
#define DP_OUTPUT_CTF_SIDECAR_H

#include "base/buf.h"
#include "output/output.h"

#define DP_SIDECAR_DIR     "dynprobe"
#define DP_SIDECAR_CLASSES "classes.json"
#define DP_SIDECAR_NAMES   "names"
#define DP_SIDECAR_VERSION 1

struct dp_sidecar; /* opaque */
struct dp_sidecar_of {
	int dir; /* the trace's; borrowed */
	const uint8_t *uuid;
	const struct dp_event_class *classes; /* borrowed */
	size_t n;
};
/* Writes classes.json. The folder must not exist. */
struct dp_error *dp_sidecar_create(const struct dp_sidecar_of *of, struct dp_sidecar **ret) DP_MUST_CHECK;
/* Writes classes.json again: a class has changed. */
struct dp_error *dp_sidecar_renew(struct dp_sidecar *s) DP_MUST_CHECK;
/* Notes the numbers of the event's process and thread; for events without backtraces, once for many is enough. */
void dp_sidecar_thread(struct dp_sidecar *s, const struct dp_event *e);
/* The same, and the names of the addresses in its backtraces. The payload has been checked; its backtraces are marked. */
void dp_sidecar_event(struct dp_sidecar *s, const struct dp_event *e);
/* Call it before the events are written: names should not be missing of events that are there. */
struct dp_error *dp_sidecar_flush(struct dp_sidecar *s) DP_MUST_CHECK;
/* Writes that the names are complete; closes and frees. Accepts NULL. */
struct dp_error *dp_sidecar_close(struct dp_sidecar *s) DP_MUST_CHECK;

/* Removes the folder of the trace whose directory is open as `dir`. */
void dp_sidecar_remove(int dir);

/* sidecar_names.c: the lines of names that are not written yet. */
struct dp_sidecar_names;                                                /* opaque */
struct dp_sidecar_names *dp_sidecar_names_create(struct dp_buf *lines); /* NULL: out of memory */
struct dp_sidecar_names *dp_sidecar_names_destroy(struct dp_sidecar_names *names);
void dp_sidecar_names_thread(struct dp_sidecar_names *names, const struct dp_event *e);
void dp_sidecar_names_event(struct dp_sidecar_names *names, const struct dp_fields *fields, const struct dp_event *e);
/* Are names missing, because there were too many or memory ran out? */
bool dp_sidecar_names_failed(const struct dp_sidecar_names *names);

#endif

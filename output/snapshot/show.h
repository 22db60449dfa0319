/* SPDX-License-Identifier: MIT */
/* Shows a snapshot as text, and as JSON (share/snapshot.schema.json). */
#ifndef DP_OUTPUT_SNAPSHOT_SHOW_H
#define DP_OUTPUT_SNAPSHOT_SHOW_H

#include "base/buf.h"
#include "pmodules/pmodules.h"

#include <stdio.h>

#define DP_SHOW_VARS 32u
struct dp_show_options {
	bool color;
	unsigned width;   /* of a line; 0: unlimited */
	bool quiet;       /* only headers and frames */
	unsigned verbose; /* 1: attributes, types, what pmodules hid; 2: addresses of variables */
	bool brief;       /* the cause, the thread that matters most, one line for each of the others */
	bool unfolded;    /* also frames and variables of the C and C++ run-time libraries */
	bool ungrouped;   /* show each thread separately, even those with the same stack */
	bool registers, maps, files, limits;
	pid_t thread;                  /* only this one; 0: all */
	int frame;                     /* only this one, of `thread` or of the first (faulting) thread; -1: all */
	const char *var[DP_SHOW_VARS]; /* only these variables: NAME, (*p).x, p->x, a.b[3], *p, file.c::NAME */
	size_t nvars;
};

/* DP_TAG_NO_VARIABLE: the snapshot has no such thread, frame or variable. */
struct dp_error *dp_show_snapshot(const struct dp_snapshot *s, const struct dp_show_options *options, FILE *to) DP_MUST_CHECK;
/* Writes one object on one line. */
struct dp_error *dp_snapshot_json(struct dp_snapshot *s, FILE *to) DP_MUST_CHECK;
/*
 * The same in parts, for readers that need few of the values: everything without variables and types; the globals; for each
 * thread {"variables":[...],"frames":[[...],...]}; the types. `json` is valid only during take().
 */
struct dp_json_sink {
	struct dp_error *(*take)(void *of, const void *json, size_t n);
	void *of;
};
struct dp_error *dp_snapshot_json_parts(struct dp_snapshot *s, const struct dp_json_sink *to) DP_MUST_CHECK;

/* A variable's value on one line, without its children: 42, 0x55aa "text", {...}; or why it has none: <optimized out>. */
void dp_show_value(struct dp_buf *b, const struct dp_snap_variable *v);

#endif

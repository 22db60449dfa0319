/* SPDX-License-Identifier: MIT */
/* Shared by the files that write snapshots as JSON. */
#ifndef DP_OUTPUT_SNAPSHOT_SNAPSHOT_JSON_INTERNAL_H
#define DP_OUTPUT_SNAPSHOT_SNAPSHOT_JSON_INTERNAL_H

#include "output/format/put.h"
#include "output/snapshot/show.h"
#include "pmodules/pmodules.h"

enum { DP_JSON_FULL = 1 << 16 };

struct dp_json_type; /* snapshot_json_variable.c */

struct dp_json {
	struct dp_buf b;
	struct dp_buf value; /* of one variable; reused for the next */
	FILE *to;            /* NULL: everything stays in the buffer */
	struct dp_json_type *types;
	unsigned depth;      /* of variables */
	bool without_values; /* omit lists of variables */
	bool failed;
};

/* Appends a comma if needed, and "name": */
void dp_json_name(struct dp_json *j, const char *name);
/* Writes out the buffer if it has at least that many bytes. */
void dp_json_flush(struct dp_json *j, size_t least);
void dp_json_notes(struct dp_json *j, const struct dp_snap_note *list);
/* "name":[...]; `owner`: the parent of the variables, or NULL. */
void dp_json_variables(struct dp_json *j, const char *name, const struct dp_snap_variable *list,
                       const struct dp_snap_variable *owner);
/* {"TYPE":{"base_type":...,"kind":...,"size":...},...}: all types written so far. */
void dp_json_types(struct dp_json *j);
void dp_json_types_fini(struct dp_json *j);

#endif

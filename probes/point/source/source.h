/* SPDX-License-Identifier: MIT */
/* Places that the source names: lines, functions of a file, inlined functions. */
#ifndef DP_PROBES_POINT_SOURCE_SOURCE_H
#define DP_PROBES_POINT_SOURCE_SOURCE_H

#include "probes/debug/debug.h"
#include "probes/point/places.h"
#include "probes/point/spec.h"

/* Adds the lines and functions of a file that `spec` names. */
struct dp_error *dp_source_select(struct dp_image *image, const struct dp_spec *spec, struct dp_selection *ret) DP_MUST_CHECK;

/* ---- lines.c ---- */

struct dp_line_query {
	const char *file; /* its full path, or the last parts */
	uint32_t line;
	bool file_known;       /* the file has lines with code */
	uint32_t below, above; /* nearest lines with code; 0 if there are none */
	char path[256];        /* the file's path in the debug information */
};
/* Adds the start of the line's code, in every copy of it. */
void dp_lines_find(struct dp_module *m, struct dp_debug *debug, struct dp_line_query *q, struct dp_selection *ret);

/* ---- inline.c ---- */

struct dp_inline_query {
	const char *name; /* as typed: a C name, or one for struct dp_name_match */
	const char *file; /* file of its definition, or NULL */
	/* If set, called for each function of that name instead of adding places. */
	void (*declared)(Dwarf_Die *function, void *data);
	void *data;
	bool out_of_line; /* also the function itself and its clones */
};
/* The start of an inlined copy, and the function's name: the linkage name if it has one. */
bool dp_inline_entry(Dwarf_Die *die, uint64_t *ret);
const char *dp_inline_called(Dwarf_Die *die);
/* Where the copy is called: its caller's file and line. */
bool dp_inline_call_site(Dwarf_Die *die, const char **file, int *line);
/* Adds the start of the function's inlined copies and, if wanted, of the function and its clones. */
void dp_inline_find(struct dp_module *m, struct dp_debug *debug, const struct dp_inline_query *q, struct dp_selection *ret);

#endif

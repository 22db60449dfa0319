/* SPDX-License-Identifier: MIT */
/* Places that the source names: lines, functions of a file, inlined functions, markers. dp_image_select() hands them out. */
#ifndef DP_PROBES_PLACES_H
#define DP_PROBES_PLACES_H

#include "probes/debug/debug.h"
#include "probes/elf/demangle.h"
#include "probes/image/image.h"

struct dp_places {
	struct dp_selection found;
	size_t capacity;
	bool failed; /* out of memory */
};

/*
 * Adds the place at the address `vaddr` of the file; what is no code is passed over. `label` is taken over and may be NULL.
 * `inside`: see struct dp_selected.
 */
struct dp_selected *dp_places_add(struct dp_places *l, struct dp_module *m, uint64_t vaddr, bool inside, char *label);
/* Ascending, each once. */
void dp_places_sort(struct dp_places *l);
void dp_places_fini(struct dp_places *l);

/* places.c: what dp_spec_is_source() says is for this. */
struct dp_error *dp_places_select(struct dp_image *image, const struct dp_spec *spec, struct dp_selection *ret) DP_MUST_CHECK;

/* Might a name or a file of that name be in the debug information at all? A search through text, without parsing. */
bool dp_debug_mentions(struct dp_debug *debug, const char *word);
/* Are the last parts of `path` those of `typed`? */
bool dp_path_ends(const char *path, const char *typed);

/* ---- lines.c ------------------------------------------------------------------------------------------------------- */

struct dp_line_query {
	const char *file; /* its last parts, or all of it */
	uint32_t line;
	bool file_known;       /* it has lines with code */
	uint32_t below, above; /* the nearest lines that have code, 0 if there are none */
	char path[256];        /* the file's, as the debug information has it */
};
/* Adds where the line's code begins, in every copy of it. */
void dp_lines_find(struct dp_module *m, struct dp_debug *debug, struct dp_line_query *q, struct dp_places *ret);

/* ---- inline.c ------------------------------------------------------------------------------------------------------ */

struct dp_inline_query {
	const char *name; /* as typed: a C name, or one that struct dp_name_match understands */
	const char *file; /* that it is defined in, or NULL */
	/* What is wanted of each function of that name; else its places. */
	void (*declared)(Dwarf_Die *function, void *data);
	void *data;
	bool out_of_line; /* the function itself and its clones, too */
};
/* Where an inlined function begins by the debug information, and what the function is called: its linkage name, if it has one. */
bool dp_inline_entry(Dwarf_Die *die, uint64_t *ret);
const char *dp_inline_called(Dwarf_Die *die);
/* Adds where copies of the function begin: those inlined in others, and, if wanted, those that are functions. */
void dp_inline_find(struct dp_module *m, struct dp_debug *debug, const struct dp_inline_query *q, struct dp_places *ret);

#endif

/* SPDX-License-Identifier: MIT */
/* Places, as a list: functions, or instructions inside of them. */
#ifndef DP_PROBES_POINT_PLACES_H
#define DP_PROBES_POINT_PLACES_H

#include "probes/image/image.h"

struct dp_selected {
	struct dp_function function; /* size 0 if unknown */
	bool ifunc;                  /* an IFUNC: it selects an implementation, so this name cannot be probed */
	bool inside;                 /* the place is `offset` bytes into the function (line, inlined function, marker) */
	uint64_t offset;
	char *label;                     /* display name if another: "foo (inlined in bar)", or NULL; owned */
	char *inlined;                   /* function whose inlined copy starts here (linkage name if it has one), or NULL;
	                                  * owned */
	const struct dp_usdt *marker;    /* the USDT marker, owned by its module; or NULL */
};
struct dp_selection {
	struct dp_selected *item; /* once sorted: ascending addresses, no duplicates */
	size_t n, capacity;
	bool failed; /* out of memory */
};
void dp_selection_fini(struct dp_selection *selection);
void dp_selected_fini(struct dp_selected *one);

/* Takes ownership of what `one` owns; NULL if out of memory. */
struct dp_selected *dp_selection_append(struct dp_selection *l, struct dp_selected one);
/*
 * Adds the place at file address `vaddr`; ignores an address outside of code. Takes ownership of `label`, which may be NULL.
 * `inside`: see struct dp_selected.
 */
struct dp_selected *dp_selection_add(struct dp_selection *l, struct dp_module *m, uint64_t vaddr, bool inside, char *label);
/*
 * The source file that the function at `addr` was compiled from, and its line (0: unknown): by debug information, else by the
 * symbol table, which knows the files of local functions. Valid as long as `m`.
 */
bool dp_place_source(struct dp_module *m, dp_addr addr, const char **file, int *line);
/* Is the file's name one that a spec FUNCTION@FILE may have? */
bool dp_place_file_typed(const char *file);
/* Sorts by address and removes duplicates. */
void dp_selection_sort(struct dp_selection *l);

#endif

/* SPDX-License-Identifier: MIT */
/* Finds types by name in debug information. */
#ifndef DP_PROBES_DWARF_TYPE_SEARCH_H
#define DP_PROBES_DWARF_TYPE_SEARCH_H

#include "probes/debug/debug.h"
#include "probes/elf/demangle.h"

struct dp_type_search {
	const char *name;                  /* qualified, without keyword */
	int tag;                           /* 's' or 'c', 'u', 'e'; 0: any */
	bool in_any_namespace;             /* of those within the one that is named */
	const struct dp_name_match *match; /* for templates: arguments may be omitted; or NULL */
	bool (*is_over)(void *data);       /* aborts the search; or NULL */
	void *data;
	Dwarf_Die exact, near; /* results; near: by `match` */
	unsigned steps;
};
/* Searches one unit; true: `exact` was found. Declarations do not count. */
bool dp_type_search_unit(struct dp_type_search *s, Dwarf_Die *unit);
/* Searches all units for `exact`, else `near`; returns what was found, or NULL. */
Dwarf_Die *dp_type_search(struct dp_type_search *s, struct dp_debug *debug);

#endif

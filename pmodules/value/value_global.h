/* SPDX-License-Identifier: MIT */
/* Walks variables that have a place of their own. */
#ifndef DP_PMODULES_VALUE_GLOBAL_H
#define DP_PMODULES_VALUE_GLOBAL_H

#include "pmodules/value/world_internal.h"

struct dp_global {
	struct dp_module *module;
	struct dp_debug *debug;
	const char *unit, *name, *qualified;
	Dwarf_Die die;
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	bool is_tls;
};
struct dp_global_query {
	const char *name;                             /* whose units are looked at; NULL: all */
	const char *object, *unit;                    /* the last parts of their paths, or NULL */
	bool statics;                                 /* those of functions, too: "function::name" */
	bool (*wanted)(const char *path, void *data); /* a module; or NULL */
	void *data;
};
/* False: enough. */
typedef bool (*dp_global_each)(struct dp_world *w, const struct dp_global *g, void *data);
void dp_globals_each(struct dp_world *w, const struct dp_global_query *q, dp_global_each each, void *data);
struct dp_value *dp_global_value(struct dp_world *w, const struct dp_global *g);
/* Of "file.c::name": how long the file is; 0: there is none. */
size_t dp_global_unit_length(const char *name);

#endif

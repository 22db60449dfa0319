/* SPDX-License-Identifier: MIT */
/* Walks variables with static storage: globals, statics, thread-locals. */
#ifndef DP_PMODULES_VALUE_VALUE_GLOBAL_H
#define DP_PMODULES_VALUE_VALUE_GLOBAL_H

#include "pmodules/value/debug_ctx_internal.h"

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
	const char *name;                             /* only units with this name; NULL: all */
	const char *object, *unit;                    /* last components of their paths, or NULL */
	bool statics;                                 /* include those of functions: "function::name" */
	bool (*wanted)(const char *path, void *data); /* selects modules; or NULL */
	void *data;
};
/* Returns false to stop. */
typedef bool (*dp_global_each)(struct dp_debug_ctx *w, const struct dp_global *g, void *data);
void dp_globals_each(struct dp_debug_ctx *w, const struct dp_global_query *q, dp_global_each each, void *data);
struct dp_value *dp_global_value(struct dp_debug_ctx *w, const struct dp_global *g);
/* The length of the file name in "file.c::name"; 0: there is none. */
size_t dp_global_unit_length(const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/* Exported symbols of a target's modules. Private to injector/. */
#ifndef DP_INJECTOR_LTTNG_SAFE_SINK_SYMBOLS_H
#define DP_INJECTOR_LTTNG_SAFE_SINK_SYMBOLS_H

#include "probes/probes.h"

struct dp_export {
	const char *name; /* owned by the module */
	uint64_t addr;    /* in the target; 0 if undefined */
	uint64_t size;
	bool function;
	bool old; /* only for programs linked against an older version */
};
struct dp_exports {
	struct dp_export *sym;
	size_t n;
};
/* The defined dynamic symbols of a module, by ascending address; none if the file has none. */
struct dp_error *dp_exports_read(struct dp_module *m, struct dp_exports *ret) DP_MUST_CHECK;
void dp_exports_fini(struct dp_exports *e);
/* The address that a program linked today would get, or 0. */
uint64_t dp_exports_find(const struct dp_exports *e, const char *name);

#endif

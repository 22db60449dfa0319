/* SPDX-License-Identifier: MIT */
/* The modules of a recorded process, and an image of them as far as their files are still the same. */
#ifndef DP_OUTPUT_TRACE_MODULES_H
#define DP_OUTPUT_TRACE_MODULES_H

#include "base/buf.h"
#include "base/error.h"
#include "probes/probes.h"

struct dp_trace_module {
	const char *path, *build_id; /* "" if it has none */
	bool checked;
	bool same;      /* the file of that path has the build-id */
	uint64_t inode; /* of that file now */
};
struct dp_trace_map {
	const char *range; /* "START-END PERMISSIONS OFFSET DEVICE", as in /proc/PID/maps */
	uint64_t start, inode;
	size_t module;
};
struct dp_trace_modules {
	struct dp_trace_module *module;
	struct dp_trace_map *map;
	size_t n, nmaps;
};
/* Texts are borrowed; NULL is refused. False: out of memory, or nonsense. */
bool dp_trace_modules_add(struct dp_trace_modules *m, const char *path, const char *build_id);
bool dp_trace_modules_map(struct dp_trace_modules *m, uint64_t module, const char *range, uint64_t inode);
void dp_trace_modules_fini(struct dp_trace_modules *m);
/* With the modules whose files are the same. */
struct dp_error *dp_trace_modules_image(struct dp_trace_modules *m, struct dp_image **ret) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The names that a process gives to code that it generates: /tmp/perf-PID.map (node --perf-basic-prof, Java agents, LuaJIT), or a
 * dump, jit-PID.dump (jitdump.h), where the process has mapped it, else in /tmp. Both are looked for in the process's own mount
 * and pid namespaces, and are untrusted: only a regular file that belongs to the process's user or to root is read, and a link is
 * not followed. They grow while the process runs: an address that has no name yet makes us read what was added since.
 */
#ifndef DP_PROBES_IMAGE_PERF_MAP_H
#define DP_PROBES_IMAGE_PERF_MAP_H

#include "base/addr.h"
#include "probes/generated/perf_names.h"

struct dp_image;
struct dp_perf_map;

/* The name at `addr`; *file is "perf-123.map" or "jit-123.dump". False: there is none. */
bool dp_perf_map_find(struct dp_image *image, dp_addr addr, struct dp_perf_name *ret, const char **file);
/* `to` is a newer image of the same program: it continues with what `from` has read. */
void dp_image_perf_inherit(struct dp_image *to, struct dp_image *from);
struct dp_perf_map *dp_perf_map_destroy(struct dp_perf_map *m);

#endif

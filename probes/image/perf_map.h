/* SPDX-License-Identifier: MIT */
/*
 * /tmp/perf-PID.map: the names that a process gives to code that it generates (node --perf-basic-prof, Java agents, LuaJIT). It is
 * looked for in the process's own mount and pid namespaces. The file is untrusted: only a regular file that belongs to the
 * process's user or to root is read, no link is followed. It grows while the process runs: an address that has no name yet makes
 * us read what was added since.
 */
#ifndef DP_PROBES_IMAGE_PERF_MAP_H
#define DP_PROBES_IMAGE_PERF_MAP_H

#include "base/addr.h"
#include "probes/image/perf_names.h"

struct dp_image;
struct dp_perf_map;

/* The name at `addr`; *file is "perf-123.map". False: there is none. */
bool dp_perf_map_find(struct dp_image *image, dp_addr addr, struct dp_perf_name *ret, const char **file);
/* `to` is a newer image of the same program: it continues with what `from` has read. */
void dp_image_perf_inherit(struct dp_image *to, struct dp_image *from);
struct dp_perf_map *dp_perf_map_destroy(struct dp_perf_map *m);

#endif

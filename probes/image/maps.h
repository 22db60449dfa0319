/* SPDX-License-Identifier: MIT */
/* Parses /proc/PID/maps into a table. Opens no files. */
#ifndef DP_PROBES_IMAGE_MAPS_H
#define DP_PROBES_IMAGE_MAPS_H

#include "probes/image/image.h"

struct dp_maps {
	struct dp_map *map; /* ascending, disjoint */
	size_t n;
};

/* Accepts only the kernel's order and format. Errors name the line. */
struct dp_error *dp_maps_parse(const char *text, struct dp_maps *ret) DP_MUST_CHECK;
void dp_maps_fini(struct dp_maps *maps);
const struct dp_map *dp_maps_at(const struct dp_maps *maps, dp_addr addr);
/*
 * The path to open: without " (deleted)", and with the kernel's only escape (\012 for a newline) undone. The kernel does not
 * escape backslashes, so the path may also be literal: if `*changed` is set, try both.
 */
char *dp_map_clean_path(const char *path, bool *changed);

#endif

/* SPDX-License-Identifier: MIT */
/* The text of /proc/PID/maps as a table. Pure: no file is opened here. */
#ifndef DP_PROBES_MAPS_H
#define DP_PROBES_MAPS_H

#include "probes/probes.h"

struct dp_maps {
	struct dp_map *map; /* ascending, disjoint */
	size_t n;
};

/* The kernel's own order and form are demanded; anything else is an error that names the line. */
struct dp_error *dp_maps_parse(const char *text, struct dp_maps *ret) DP_MUST_CHECK;
void dp_maps_fini(struct dp_maps *maps);
const struct dp_map *dp_maps_at(const struct dp_maps *maps, dp_addr addr);
/*
 * The path to open: without " (deleted)", and with the kernel's one escape, \012 for a newline, undone. The kernel does not
 * escape backslashes, so a path may mean itself: `*changed` says that the two differ and both are worth a try.
 */
char *dp_map_clean_path(const char *path, bool *changed);

#endif

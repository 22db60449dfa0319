/* SPDX-License-Identifier: MIT */
/* Replaces an image's mappings and keeps its modules with all that is known about them. */
#include "probes/image/image_internal.h"

#include <string.h>

static const struct dp_map *of_module(const struct dp_maps *maps, const struct dp_module *m)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct dp_map *map = &maps->map[i];
		if (map->start.v < m->end.v && map->end.v > m->start.v && map->inode == m->inode &&
		    !strcmp(map->path, m->mapped_path))
			return map;
	}
	return NULL;
}

struct dp_error *dp_image_renew(struct dp_image *image, const char *maps, bool *ret)
{
	struct dp_maps fresh;
	*ret = true;
	DP_TRY(dp_maps_parse(maps, &fresh));
	for (size_t i = 0; i < image->nmodules && *ret; i++)
		*ret = of_module(&fresh, image->module[i]);
	if (!*ret) {
		dp_maps_fini(&fresh);
		return NULL;
	}
	for (size_t i = 0; i < image->nmodules; i++)
		image->module[i]->mapped_path = of_module(&fresh, image->module[i])->path;
	dp_maps_fini(&image->maps);
	image->maps = fresh;
	return NULL;
}

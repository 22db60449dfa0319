/* SPDX-License-Identifier: MIT */
/*
 * Newer mappings of the same process. An image may take them and keep its modules with all that is known about them. Or it stays
 * as it is, because probes and names refer to its modules, and newer images, of what the process has loaded since, hang behind
 * it.
 */
#include "probes/image/image_internal.h"

#include "agent/abi.h"

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

/* ---- images behind an image ------------------------------------------------------------------------------------------------ */

static bool is_code(const struct dp_map *m)
{
	return m->exec && m->path[0] == '/' && strcmp(m->path, "/memfd:" DP_MEMFD_NAME " (deleted)") != 0;
}

static bool has(const struct dp_image *image, const struct dp_map *m)
{
	const struct dp_map *old = dp_maps_at(&image->maps, m->start);
	return old && old->exec && old->offset - old->start.v == m->offset - m->start.v && old->end.v >= m->end.v &&
	       old->inode == m->inode && old->dev_major == m->dev_major && old->dev_minor == m->dev_minor &&
	       !strcmp(old->path, m->path);
}

struct dp_image *dp_image_latest(struct dp_image *image)
{
	return image->later ? image->later : image;
}

unsigned dp_image_nlater(const struct dp_image *image)
{
	return image->nlater;
}

struct dp_error *dp_image_knows_code(const struct dp_image *image, const char *maps, bool *ret)
{
	const struct dp_image *latest = image->later ? image->later : image;
	struct dp_maps now;
	*ret = true;
	DP_TRY(dp_maps_parse(maps, &now));
	for (size_t i = 0; i < now.n && *ret; i++)
		*ret = !is_code(&now.map[i]) || has(latest, &now.map[i]);
	dp_maps_fini(&now);
	return NULL;
}

void dp_image_add_later(struct dp_image *image, struct dp_image *later)
{
	later->later = image->later;
	image->later = later;
	image->nlater++;
	dp_image_number(image);
}

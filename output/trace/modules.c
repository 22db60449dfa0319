/* SPDX-License-Identifier: MIT */
#include "output/trace/modules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MODULES_MOST 65536u

static bool is_power(size_t n)
{
	return !(n & (n - 1));
}

bool dp_trace_modules_add(struct dp_trace_modules *m, const char *path, const char *build_id)
{
	if (!path || !build_id || strchr(path, '\n') || m->n >= MODULES_MOST)
		return false;
	if (is_power(m->n)) {
		struct dp_trace_module *grown = reallocarray(m->module, m->n ? 2 * m->n : 1, sizeof(*grown));
		if (!grown)
			return false;
		m->module = grown;
	}
	m->module[m->n++] = (struct dp_trace_module){.path = path, .build_id = build_id};
	return true;
}

/* Only what dp_maps_parse() takes as the beginning of a line. */
static bool is_range(const char *range)
{
	unsigned long long start, end, offset;
	unsigned major, minor;
	char permissions[5], rest;
	return range &&
	       sscanf(range, "%llx-%llx %4[rwxsp-] %llx %x:%x%c", &start, &end, permissions, &offset, &major, &minor, &rest) == 6;
}

bool dp_trace_modules_map(struct dp_trace_modules *m, uint64_t module, const char *range, uint64_t inode)
{
	if (!is_range(range) || module >= m->n || m->nmaps >= MODULES_MOST)
		return false;
	if (is_power(m->nmaps)) {
		struct dp_trace_map *grown = reallocarray(m->map, m->nmaps ? 2 * m->nmaps : 1, sizeof(*grown));
		if (!grown)
			return false;
		m->map = grown;
	}
	m->map[m->nmaps++] = (struct dp_trace_map){
	        .range = range, .start = strtoull(range, NULL, 16), .inode = inode, .module = (size_t)module};
	return true;
}

void dp_trace_modules_fini(struct dp_trace_modules *m)
{
	free(m->module);
	free(m->map);
	*m = (struct dp_trace_modules){0};
}

/* Without a build-id only the inode can tell: the image compares it. */
static void compare(struct dp_trace_module *m)
{
	struct dp_image *image = NULL;
	struct stat st;
	m->checked = true;
	if (!*m->build_id || m->path[0] != '/' || stat(m->path, &st))
		return;
	struct dp_error *err = dp_image_from_file(m->path, &image);
	m->same = !err && !strcmp(dp_module_build_id(dp_image_module(image, 0)), m->build_id);
	m->inode = st.st_ino;
	dp_error_destroy(err);
	dp_image_destroy(image);
}

static int by_address(const void *x, const void *y)
{
	const struct dp_trace_map *a = x, *b = y;
	return (a->start > b->start) - (a->start < b->start);
}

static void put_maps(struct dp_trace_modules *m, struct dp_buf *text)
{
	if (m->nmaps)
		qsort(m->map, m->nmaps, sizeof(*m->map), by_address);
	for (size_t i = 0; i < m->nmaps; i++) {
		struct dp_trace_module *of = &m->module[m->map[i].module];
		if (!of->checked)
			compare(of);
		if (of->same || !*of->build_id)
			dp_buf_printf(text, "%s %" PRIu64 " %s\n", m->map[i].range, of->same ? of->inode : m->map[i].inode,
			              of->path);
	}
}

struct dp_error *dp_trace_modules_image(struct dp_trace_modules *m, struct dp_image **ret)
{
	struct dp_buf text;
	dp_buf_init(&text);
	put_maps(m, &text);
	struct dp_error *err = text.failed ? dp_error_nomem() : dp_image_create(dp_buf_str(&text), "", 0, ret);
	dp_buf_fini(&text);
	return err;
}

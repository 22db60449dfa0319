/* SPDX-License-Identifier: MIT */
/* Reads /proc after the release: command line, environment, open files, limits, mappings. */
#include "pmodules/capture/capture_internal.h"

#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FILES_MOST 65536u
#define WORDS_MOST 65536u
#define TEXT_MOST  (4u << 20)

/* Reads NUL-terminated words. */
static const char *const *take_words(struct dp_snapshot *s, const char *what, pid_t pid)
{
	struct dp_buf b;
	const char **list = NULL;
	size_t n = 0;
	dp_buf_init(&b);
	if (dp_proc_slurp(&b, "/proc/%d/%s", pid, what) && b.len && b.len <= TEXT_MOST) {
		const char *text = dp_arena_copy(&s->arena, (const char *)b.data, b.len), *end = text + b.len;
		for (const char *p = text; text && p < end && n < WORDS_MOST; p += strlen(p) + 1)
			n++;
		list = text ? dp_arena_alloc(&s->arena, (n + 1) * sizeof(*list)) : NULL;
		n = 0;
		for (const char *p = text; list && p < end && n < WORDS_MOST; p += strlen(p) + 1)
			list[n++] = p;
	}
	dp_buf_fini(&b);
	return (const char *const *)list;
}

static void take_exe(struct dp_snapshot *s, pid_t pid)
{
	char path[64], exe[PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	const ssize_t n = readlink(path, exe, sizeof(exe) - 1);
	if (n > 0)
		s->exe = dp_arena_copy(&s->arena, exe, (size_t)n);
	if (!s->exe)
		s->exe = "";
}

void dp_snap_capture_identity(struct dp_snapshot *s, const struct dp_stopped *still)
{
	s->pid = dp_stopped_pid(still);
	s->inner_pid = dp_stopped_inner_pid(still);
	s->comm = dp_snapshot_text(s, dp_stopped_comm(still));
	if (dp_stopped_mode(still) != DP_STOPPED_CORE)
		take_exe(s, s->pid);
}

static int by_number(const void *a, const void *b)
{
	const struct dp_snap_file *x = a, *y = b;
	return (x->fd > y->fd) - (x->fd < y->fd);
}

static size_t count_files(const char *path)
{
	size_t n = 0;
	dp_auto_closedir DIR *dir = opendir(path);
	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
		n += isdigit((unsigned char)e->d_name[0]) != 0;
	return n;
}

static void take_files(struct dp_snapshot *s, pid_t pid)
{
	char path[64], link[sizeof(path) + NAME_MAX + 2], target[PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	const size_t most = count_files(path);
	dp_auto_closedir DIR *dir = opendir(path);
	if (!dir)
		return;
	dp_snapshot_set_int(s, "descriptor.count", (int64_t)most);
	const size_t room = most < FILES_MOST ? most : FILES_MOST;
	s->files = dp_arena_alloc(&s->arena, (room + 1) * sizeof(*s->files));
	for (struct dirent *e = readdir(dir); e && s->files && s->nfiles < room; e = readdir(dir)) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(link, sizeof(link), "%s/%s", path, e->d_name);
		const ssize_t n = readlink(link, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		s->files[s->nfiles++] = (struct dp_snap_file){(int)strtol(e->d_name, NULL, 10), dp_snapshot_text(s, target)};
	}
	if (s->files)
		qsort(s->files, s->nfiles, sizeof(*s->files), by_number);
	if (most > room)
		dp_snapshot_truncated(s, "%zu open files are not listed", most - room);
}

/* A column of the line, without trailing blanks. */
static const char *column(struct dp_snapshot *s, const char *line, size_t from, size_t to)
{
	const size_t len = strcspn(line, "\n");
	if (to > len)
		to = len;
	while (to > from && line[to - 1] == ' ')
		to--;
	const char *text = to > from ? dp_arena_copy(&s->arena, line + from, to - from) : NULL;
	return text ? text : "";
}

/* Columns start where their headings do. */
static void take_limits(struct dp_snapshot *s, pid_t pid)
{
	struct dp_buf b;
	size_t lines = 0;
	dp_buf_init(&b);
	const char *text = dp_proc_slurp(&b, "/proc/%d/limits", pid) ? dp_buf_str(&b) : "";
	const char *soft = strstr(text, "Soft Limit"), *hard = strstr(text, "Hard Limit"), *unit = strstr(text, "Units");
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	if (soft && hard && unit && soft < hard && hard < unit)
		s->limits = dp_arena_alloc(&s->arena, (lines + 1) * sizeof(*s->limits));
	const char *line = strchr(text, '\n');
	const size_t at_soft = (size_t)(soft - text), at_hard = (size_t)(hard - text), at_unit = (size_t)(unit - text);
	for (; s->limits && line && line[1]; line = strchr(line + 1, '\n'))
		s->limits[s->nlimits++] = (struct dp_snap_limit){
		        column(s, line + 1, 0, at_soft),
		        column(s, line + 1, at_soft, at_hard),
		        column(s, line + 1, at_hard, at_unit),
		        column(s, line + 1, at_unit, SIZE_MAX),
		};
	dp_buf_fini(&b);
}

void dp_snap_capture_facts(struct dp_snapshot *s, pid_t pid, bool with_environ)
{
	const char *const *argv = take_words(s, "cmdline", pid);
	if (argv)
		s->argv = argv;
	if (with_environ)
		s->environ = take_words(s, "environ", pid);
	take_files(s, pid);
	take_limits(s, pid);
}

void dp_snap_capture_core_facts(struct dp_snapshot *s, const struct dp_stopped *still)
{
	dp_snapshot_classify(s, "core");
	for (size_t i = 0; dp_stopped_doubt(still, i); i++)
		dp_snapshot_note(s, &s->notes, DP_NOTE_WARNING, dp_stopped_doubt(still, i));
}

/* ---- mappings ----------------------------------------------------------------------------------------------------------- */

static void take_maps(struct dp_snapshot *s, const struct dp_image *image)
{
	const size_t n = dp_image_nmaps(image);
	s->maps = dp_arena_alloc(&s->arena, (n + 1) * sizeof(*s->maps));
	for (size_t i = 0; s->maps && i < n; i++) {
		const struct dp_map *m = dp_image_map(image, i), *next = i + 1 < n ? dp_image_map(image, i + 1) : NULL;
		const bool guards = !m->read && !m->write && !m->exec && !*m->path && next && next->start.v == m->end.v &&
		                    next->write && !next->shared && !next->inode;
		s->maps[s->nmaps++] = (struct dp_snap_map){.start = m->start.v,
		                                           .end = m->end.v,
		                                           .offset = m->offset,
		                                           .inode = m->inode,
		                                           .read = m->read,
		                                           .write = m->write,
		                                           .exec = m->exec,
		                                           .shared = m->shared,
		                                           .is_guard = guards,
		                                           .path = dp_snapshot_text(s, m->path)};
	}
}

static int by_path(const void *a, const void *b)
{
	const struct dp_snap_object *const *x = a, *const *y = b;
	return strcmp((*x)->path, (*y)->path);
}

/* Extends all objects of m's file to include m. */
static void stretch(struct dp_snap_object **sorted, size_t n, const struct dp_map *m)
{
	size_t lo = 0, hi = n;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		if (strcmp(sorted[mid]->path, m->path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < n && !strcmp(sorted[lo]->path, m->path); lo++) {
		struct dp_snap_object *o = sorted[lo];
		if (!o->end || m->start.v < o->start)
			o->start = m->start.v;
		if (m->end.v > o->end)
			o->end = m->end.v;
	}
}

/* O(n log n): programs may have very many mappings, and a core file's lists are not trustworthy. */
static void find_extents(struct dp_snapshot *s, const struct dp_image *image)
{
	dp_auto_free struct dp_snap_object **sorted = calloc(s->nobjects + 1, sizeof(struct dp_snap_object *));
	for (size_t i = 0; sorted && i < s->nobjects; i++)
		sorted[i] = &s->objects[i];
	if (!sorted)
		return;
	qsort(sorted, s->nobjects, sizeof(*sorted), by_path);
	for (size_t i = 0; i < dp_image_nmaps(image); i++)
		stretch(sorted, s->nobjects, dp_image_map(image, i));
}

void dp_snap_capture_image(struct dp_snapshot *s, struct dp_image *image)
{
	const size_t n = dp_image_nmodules(image);
	take_maps(s, image);
	s->objects = dp_arena_alloc(&s->arena, (n + 1) * sizeof(*s->objects));
	for (size_t i = 0; s->objects && i < n; i++) {
		struct dp_module *m = dp_image_module(image, i);
		struct dp_snap_object *o = &s->objects[s->nobjects++];
		o->path = dp_snapshot_text(s, dp_module_path(m));
		o->name = dp_module_shown(m) == dp_module_name(m) ? "" : dp_snapshot_text(s, dp_module_shown(m));
		o->build_id = dp_snapshot_text(s, dp_module_build_id(m));
		o->bias = dp_module_bias(m);
	}
	find_extents(s, image);
}

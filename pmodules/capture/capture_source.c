/* SPDX-License-Identifier: MIT */
/*
 * Source lines around each frame's line. Paths come from debug information, which may contain anything: only regular files with
 * the name of a source file are read, up to a few megabytes each.
 */
#include "pmodules/capture/capture_internal.h"

#include "base/cleanup.h"
#include "base/regular.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define AROUND       6
#define FILE_MOST    (8u << 20)
#define SOURCES_MOST 512u

struct place {
	const char *path;
	int line;
};

static bool looks_like_source(const char *path)
{
	static const char *const ends[] = {".c",   ".h",   ".cc",  ".cpp", ".cxx", ".hpp", ".hh", ".hxx",
	                                   ".inl", ".ipp", ".tcc", ".C",   ".S",   ".s",   ".rs", ".go",
	                                   ".d",   ".f90", ".zig", ".m",   ".y",   ".l",   ".def"};
	const char *dot = strrchr(path, '.');
	for (size_t i = 0; dot && !strchr(dot, '/') && i < sizeof(ends) / sizeof(*ends); i++)
		if (!strcmp(dot, ends[i]))
			return true;
	return dot && strchr(dot, '/') ? false : strstr(path, "/include/c++/") != NULL;
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	const int path = strcmp(x->path, y->path);
	return path ? path : (x->line > y->line) - (x->line < y->line);
}

/* Each place once, sorted. */
static struct place *collect(const struct dp_snapshot *s, size_t *n)
{
	struct place *list = NULL;
	size_t cap = 0, kept = 0;
	*n = 0;
	for (const struct dp_snap_thread *t = s->threads; t; t = t->next)
		for (const struct dp_snap_frame *f = t->frames; f; f = f->next) {
			if (!f->path || f->line <= 0 || *f->path != '/' || !looks_like_source(f->path))
				continue;
			if (*n == cap) {
				cap = cap ? 2 * cap : 64;
				struct place *grown = realloc(list, cap * sizeof(*grown));
				if (!grown)
					return list;
				list = grown;
			}
			list[(*n)++] = (struct place){f->path, f->line};
		}
	if (*n)
		qsort(list, *n, sizeof(*list), by_place);
	for (size_t i = 0; i < *n; i++)
		if (!kept || by_place(&list[kept - 1], &list[i]))
			list[kept++] = list[i];
	*n = kept;
	return list;
}

static char *read_whole(const char *path)
{
	struct stat st;
	dp_auto_close int fd = dp_open_regular(path);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > FILE_MOST)
		return NULL;
	char *text = malloc((size_t)st.st_size + 1);
	const ssize_t n = text ? read(fd, text, (size_t)st.st_size) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* Adds lines first..last, or as many as exist. */
static void add_lines(struct dp_snapshot *s, const char *path, const char *text, int first, int last)
{
	const char *from = text;
	for (int i = 1; i < first && from; i++)
		if ((from = strchr(from, '\n')))
			from++;
	if (!from || !*from)
		return;
	const char *to = from;
	unsigned n = 0;
	for (int i = first; i <= last && *to; i++, n++) {
		to += strcspn(to, "\n");
		to += *to == '\n';
	}
	const size_t len = (size_t)(to - from) - (to > from && to[-1] == '\n');
	const char *lines = dp_arena_copy(&s->arena, from, len);
	if (lines)
		s->sources[s->nsources++] = (struct dp_snap_source){dp_snapshot_text(s, path), first, lines, n};
}

/* Adds all places of one file; close ones share their lines. Returns the number of places. */
static size_t add_file(struct dp_snapshot *s, const struct place *place, size_t n)
{
	size_t of_file = 0;
	while (of_file < n && !strcmp(place[of_file].path, place->path))
		of_file++;
	dp_auto_free char *text = read_whole(place->path);
	for (size_t i = 0, k; text && i < of_file && s->nsources < SOURCES_MOST; i = k) {
		const int first = place[i].line > AROUND ? place[i].line - AROUND : 1;
		for (k = i + 1; k < of_file && place[k].line - place[k - 1].line <= 2 * AROUND; k++)
			;
		const int last = place[k - 1].line < INT32_MAX - AROUND ? place[k - 1].line + AROUND : INT32_MAX - 1;
		add_lines(s, place->path, text, first, last);
	}
	return of_file;
}

void dp_snap_capture_sources(struct dp_snapshot *s)
{
	size_t n;
	dp_auto_free struct place *place = collect(s, &n);
	if (!n || !(s->sources = dp_arena_alloc(&s->arena, SOURCES_MOST * sizeof(*s->sources))))
		return;
	for (size_t i = 0; i < n && s->nsources < SOURCES_MOST;)
		i += add_file(s, &place[i], n - i);
}

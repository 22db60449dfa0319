/* SPDX-License-Identifier: MIT */
#include "session/traces/traces.h"

#include "base/cleanup.h"
#include "output/ctf/ctf_dir.h"
#include "output/trace/merged.h"
#include "session/traces/traces_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PREFIX     "dynprobe-"
#define COUNT_MOST (UINT64_C(1) << 21)
#define SECOND_NS  INT64_C(1000000000)

char *dp_traces_dir(void)
{
	const char *home = dp_home();
	char *dir = NULL;
	return home && asprintf(&dir, "%s/lttng-traces", home) >= 0 ? dir : NULL;
}

/* ---- listing --------------------------------------------------------------------------------------------------------------- */

/* NAME of dynprobe-NAME-YYYYMMDD-HHMMSS, which may have a number behind it. */
static char *program_of(const char *name)
{
	const char *from = name + strlen(PREFIX), *end = from + strlen(from);
	for (const char *dash = end; dash > from; dash--)
		if (*dash == '-' && strspn(dash + 1, "0123456789") == 8 && dash[9] == '-' && strspn(dash + 10, "0123456789") == 6)
			return strndup(from, (size_t)(dash - from));
	return strdup(from);
}

static void entry_fini(struct dp_trace_entry *e)
{
	free(e->name);
	free(e->path);
	free(e->program);
}

static struct dp_error *add(struct dp_trace_list *list, const char *dir, const char *name)
{
	struct dp_trace_entry e = {.name = strdup(name), .program = program_of(name)};
	struct dp_trace_files files;
	struct stat st;
	e.path = asprintf(&e.path, "%s/%s", dir, name) < 0 ? NULL : e.path;
	struct dp_trace_entry *grown = reallocarray(list->item, list->n + 1, sizeof(*grown));
	list->item = grown ? grown : list->item;
	const bool failed = !e.name || !e.path || !e.program || !grown;
	if (failed || !dp_trace_files_look(e.path, &files) || stat(e.path, &st)) {
		entry_fini(&e);
		return failed ? dp_error_nomem() : NULL;
	}
	e.bytes = files.bytes;
	e.pieces = files.pieces;
	e.modified_ns = (int64_t)st.st_mtim.tv_sec * SECOND_NS + st.st_mtim.tv_nsec;
	list->item[list->n++] = e;
	return NULL;
}

static int newest_first(const void *x, const void *y)
{
	const struct dp_trace_entry *a = x, *b = y;
	if (a->modified_ns != b->modified_ns)
		return a->modified_ns < b->modified_ns ? 1 : -1;
	return strcmp(b->name, a->name);
}

struct dp_error *dp_traces_list(const char *dir, struct dp_trace_list *ret)
{
	struct dp_trace_list list = {0};
	struct dp_error *err = NULL;
	dp_auto_closedir DIR *d = opendir(dir);
	for (const struct dirent *e; !err && d && (e = readdir(d));)
		if (!strncmp(e->d_name, PREFIX, strlen(PREFIX)))
			err = add(&list, dir, e->d_name);
	if (err) {
		dp_traces_fini(&list);
		return err;
	}
	if (list.n)
		qsort(list.item, list.n, sizeof(*list.item), newest_first);
	*ret = list;
	return NULL;
}

void dp_traces_fini(struct dp_trace_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		entry_fini(&list->item[i]);
	free(list->item);
	*list = (struct dp_trace_list){0};
}

/* ---- measuring ------------------------------------------------------------------------------------------------------------- */

static void note_damage(const char *text, void *data)
{
	(void)text;
	*(bool *)data = true;
}

static struct dp_error *measure(struct dp_merged *m, const char *path, struct dp_trace_measure *ret)
{
	const struct dp_event_class *classes;
	struct dp_event event;
	uint64_t begin, end;
	size_t n;
	DP_TRY(dp_merged_add(m, path));
	DP_TRY(dp_merged_classes(m, &classes, &n));
	if (dp_merged_bounds(m, &begin, &end)) {
		ret->begin_ns = (int64_t)begin + dp_merged_clock_offset(m);
		ret->length_ns = end - begin;
	}
	while (!ret->more && dp_merged_next(m, &event))
		ret->more = ++ret->events >= COUNT_MOST;
	dp_merged_damages(m, note_damage, &ret->damaged);
	return NULL;
}

struct dp_error *dp_traces_measure(const char *path, struct dp_trace_measure *ret)
{
	struct dp_merged *m = NULL;
	*ret = (struct dp_trace_measure){0};
	DP_TRY(dp_merged_create(&m));
	struct dp_error *err = measure(m, path, ret);
	dp_merged_destroy(m);
	return err;
}

/* ---- removing -------------------------------------------------------------------------------------------------------------- */

struct dp_error *dp_traces_remove(const char *path)
{
	struct dp_trace_files files;
	const bool is_trace = dp_trace_files_look(path, &files);
	if (!is_trace)
		return dp_error(DP_TAG_BAD_TRACE, "%s is not removed: it is no directory of a trace that dynprobe recorded",
		                path);
	if (files.foreign[0])
		return dp_error(DP_TAG_BAD_TRACE, "%s is not removed: it has a file that is not the trace's, %s", path,
		                files.foreign);
	const pid_t user = dp_trace_files_user(path);
	if (user)
		return dp_error(DP_TAG_LOCKED, "%s is not removed: process %d has it open", path, user);
	if (files.pieces)
		dp_dir_remove_pieces(path);
	dp_dir_remove_piece(path);
	rmdir(path);
	return access(path, F_OK) ? NULL : dp_error_sys(DP_TAG_OUTPUT, "%s could not be removed as a whole", path);
}

/* SPDX-License-Identifier: MIT */
#include "cli/commands/list/twins.h"

#include "base/path.h"
#include "probes/point/places.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	const struct dp_named *const *x = a, *const *y = b;
	return strcmp((*x)->f.name, (*y)->f.name);
}

bool dp_twins_open(const struct dp_named *item, size_t n, struct dp_twins *ret)
{
	*ret = (struct dp_twins){.item = calloc(n + 1, sizeof(*ret->item))};
	if (!ret->item)
		return false;
	for (size_t i = 0; i < n; i++)
		if (*item[i].f.name)
			ret->item[ret->n++] = &item[i];
	if (ret->n)
		qsort(ret->item, ret->n, sizeof(*ret->item), by_name);
	return true;
}

void dp_twins_close(struct dp_twins *t)
{
	free(t->item);
	*t = (struct dp_twins){0};
}

static const char *source_of(const struct dp_named *item, int *line)
{
	const char *file;
	return dp_place_source(item->f.module, item->f.start, &file, line) ? file : NULL;
}

/* The first of those with the name; *n: how many there are. */
static const struct dp_named **find(const struct dp_twins *t, const char *name, size_t *n)
{
	size_t lo = 0, hi = t->n;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		if (strcmp(t->item[mid]->f.name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	*n = 0;
	while (lo + *n < t->n && !strcmp(t->item[lo + *n]->f.name, name))
		++*n;
	return t->item + lo;
}

const char *dp_twins_file(const struct dp_twins *t, const struct dp_named *item, const char *name, int *line)
{
	size_t n;
	const struct dp_named **twin = find(t, name, &n);
	const char *path = n > 1 ? source_of(item, line) : NULL, *shown = path ? dp_path_last(path) : NULL;
	for (size_t i = 0; i < n && path; i++) {
		int ignored;
		const char *other = twin[i]->f.start.v == item->f.start.v ? NULL : source_of(twin[i], &ignored);
		if (other && !strcmp(other, path))
			return NULL;
		if (other && !strcmp(dp_path_last(other), dp_path_last(path)))
			shown = path;
	}
	return shown && dp_place_file_typed(shown) ? shown : NULL;
}

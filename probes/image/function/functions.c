/* SPDX-License-Identifier: MIT */
#include "probes/image/function/functions.h"

#include "base/cleanup.h"
#include "probes/image/module.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct list {
	struct dp_named *item;
	size_t n, capacity;
};

static struct dp_error *append(struct list *l, struct dp_named item)
{
	if (l->n == l->capacity) {
		const size_t capacity = l->capacity ? 2 * l->capacity : 1024;
		struct dp_named *grown = realloc(l->item, capacity * sizeof(*grown));
		if (!grown)
			return dp_error_nomem();
		l->item = grown;
		l->capacity = capacity;
	}
	l->item[l->n++] = item;
	return NULL;
}

static bool named_before(const struct list *l, dp_addr start, const char *name)
{
	for (size_t i = l->n; i-- > 0 && l->item[i].f.start.v == start.v;)
		if (!strcmp(l->item[i].f.name, name))
			return true;
	return false;
}

/* The index is sorted by address, the best symbol of each address first. */
static struct dp_error *add_symbols(struct dp_module *m, const struct dp_symbol_index *index, struct list *l)
{
	uint64_t reach = 0;
	for (size_t i = 0; i < index->n; i++) {
		const struct dp_symbol *s = index->symbol[i];
		const struct dp_fde *fde = s->size ? NULL : dp_module_fde_at(m, s->value);
		const dp_addr start = dp_module_addr(m, s->value);
		const bool alias = l->n && l->item[l->n - 1].f.start.v == start.v;
		struct dp_named item = {{start, s->size, s->name, m}, alias, s->type == STT_GNU_IFUNC};
		if ((s->type == STT_NOTYPE && !s->size && s->value < reach && !alias) || named_before(l, start, s->name))
			continue;
		if (alias && !item.f.size)
			item.f.size = l->item[l->n - 1].f.size;
		else if (fde)
			item.f.size = fde->start + fde->size - s->value;
		reach = s->value + item.f.size > reach ? s->value + item.f.size : reach;
		DP_TRY(append(l, item));
	}
	return NULL;
}

/* Adds functions of .eh_frame that no symbol covers. */
static struct dp_error *add_nameless(struct dp_module *m, struct list *l)
{
	const struct dp_fdes *fdes = dp_module_fdes(m);
	const size_t named = l->n;
	uint64_t main_vaddr = 0, reach = 0;
	dp_error_destroy(m->executable && !dp_module_own_symbols(m)->has_symtab ? dp_module_find_main(m, &main_vaddr) : NULL);
	for (size_t i = 0, k = 0; i < fdes->n; i++) {
		const uint64_t at = fdes->fde[i].start, end = at + fdes->fde[i].size;
		bool taken = false;
		for (; k < named && dp_module_vaddr(m, l->item[k].f.start) < end; k++) {
			const uint64_t start = dp_module_vaddr(m, l->item[k].f.start);
			taken |= start >= at;
			reach = start + l->item[k].f.size > reach ? start + l->item[k].f.size : reach;
		}
		if (taken || at < reach)
			continue;
		const struct dp_function f = {dp_module_addr(m, at), fdes->fde[i].size, main_vaddr == at ? "main" : "", m};
		DP_TRY(append(l, (struct dp_named){.f = f}));
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct dp_named *x = a, *y = b;
	if (x->f.start.v != y->f.start.v)
		return x->f.start.v < y->f.start.v ? -1 : 1;
	return x->alias != y->alias ? x->alias - y->alias : strcmp(x->f.name, y->f.name);
}

/* Combines the file's own symbols with those of its debug file (one of the two is empty, or nearly). */
static struct dp_error *collect(struct dp_module *m, struct list *l)
{
	struct dp_symbols all = {0};
	struct dp_symbol_index index = {0};
	const struct dp_symbols *own = dp_module_own_symbols(m), *debug = dp_module_debug_symbols(m);
	all.symbol = calloc(own->n + debug->n + 1, sizeof(*all.symbol));
	if (!all.symbol)
		return dp_error_nomem();
	if (own->n)
		memcpy(all.symbol, own->symbol, own->n * sizeof(*all.symbol));
	if (debug->n)
		memcpy(all.symbol + own->n, debug->symbol, debug->n * sizeof(*all.symbol));
	all.n = own->n + debug->n;
	dp_symbol_index_build(&index, &all);
	struct dp_error *err = add_symbols(m, &index, l);
	dp_symbol_index_fini(&index);
	free(all.symbol);
	return err ? err : add_nameless(m, l);
}

struct dp_error *dp_module_functions(struct dp_module *m, struct dp_named **ret, size_t *n)
{
	struct list l = {0};
	struct dp_error *err = m->elf ? collect(m, &l) : dp_module_failure(m);
	if (err) {
		free(l.item);
		return err;
	}
	if (l.n)
		qsort(l.item, l.n, sizeof(*l.item), compare);
	*ret = l.item;
	*n = l.n;
	return NULL;
}

bool dp_module_glob(const struct dp_module *m, const char *glob)
{
	const char *bang = glob ? strrchr(glob, '!') : NULL;
	dp_auto_free char *module = bang ? strndup(glob, (size_t)(bang - glob)) : NULL;
	return dp_module_matches(m, module);
}

bool dp_name_glob(const char *glob, const char *name)
{
	const char *bang = glob ? strrchr(glob, '!') : NULL, *symbol = bang ? bang + 1 : glob;
	/* A literal match comes first: Go's names contain brackets and stars. */
	return !symbol || !*symbol || !strcmp(symbol, name) || !fnmatch(symbol, name, 0);
}

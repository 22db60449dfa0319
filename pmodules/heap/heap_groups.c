/* SPDX-License-Identifier: MIT */
/* Totals, and the candidates by size and first word: of objects with a vtable, by their class. */
#include "pmodules/heap/heap_internal.h"

#include <stdlib.h>

#define MOST_GROUPS 4096u

/* The first word, if it leads into a mapped file: a vtable, a function, a constant. */
static uint64_t first_word(struct dp_heap_survey *h, const struct dp_heap_block *b)
{
	uint64_t word;
	if (!dp_heap_get(h, b->at, &word, sizeof(word)))
		return 0;
	const struct dp_map *m = dp_image_map_at(h->m->image, dp_addr_of(word));
	return m && *m->path == '/' ? word : 0;
}

static int by_kind(const void *a, const void *b)
{
	const struct pmodule_heap_group *x = a, *y = b;
	if (x->size != y->size)
		return (x->size > y->size) - (x->size < y->size);
	if (x->first != y->first)
		return (x->first > y->first) - (x->first < y->first);
	return (x->address > y->address) - (x->address < y->address);
}

static int by_bytes(const void *a, const void *b)
{
	const struct pmodule_heap_group *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) : by_kind(a, b);
}

/* Makes one of neighbours of a kind. */
static size_t merge(struct pmodule_heap_group *g, size_t n)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		struct pmodule_heap_group *last = kept ? &g[kept - 1] : NULL;
		if (!last || last->size != g[i].size || last->first != g[i].first) {
			g[kept++] = g[i];
			continue;
		}
		last->count += g[i].count;
		last->bytes += g[i].bytes;
		last->within += g[i].within;
	}
	return kept;
}

static void count(struct dp_heap_survey *h, struct pmodule_heap *ret)
{
	for (size_t i = 0; i < h->nblocks; i++) {
		const struct dp_heap_block *b = &h->block[i];
		const uint64_t size = dp_heap_size(b);
		*(b->state == DP_HEAP_CACHED ? &ret->cached : &ret->used) += 1;
		*(b->state == DP_HEAP_CACHED ? &ret->cached_bytes : &ret->used_bytes) += size;
		if (b->state != DP_HEAP_UNREACHED)
			continue;
		ret->lost++;
		ret->lost_bytes += size;
		ret->within += b->is_within;
	}
}

static size_t list(struct dp_heap_survey *h, struct pmodule_heap_group *g)
{
	size_t n = 0;
	for (size_t i = 0; i < h->nblocks; i++) {
		const struct dp_heap_block *b = &h->block[i];
		const uint64_t size = dp_heap_size(b);
		if (b->state == DP_HEAP_UNREACHED)
			g[n++] = (struct pmodule_heap_group){.size = size,
			                                     .count = 1,
			                                     .bytes = size,
			                                     .within = b->is_within,
			                                     .address = b->at,
			                                     .first = first_word(h, b)};
	}
	return n;
}

void dp_heap_report(struct dp_heap_survey *h, struct dp_arena *arena, struct pmodule_heap *ret)
{
	count(h, ret);
	if (!ret->lost)
		return;
	struct pmodule_heap_group *all = malloc(ret->lost * sizeof(*all));
	if (!all) {
		h->failed = true;
		return;
	}
	size_t n = list(h, all);
	qsort(all, n, sizeof(*all), by_kind);
	n = merge(all, n);
	qsort(all, n, sizeof(*all), by_bytes);
	ret->ngroups = n < MOST_GROUPS ? n : MOST_GROUPS;
	struct pmodule_heap_group *kept = dp_arena_alloc(arena, ret->ngroups * sizeof(*kept));
	h->failed |= !kept;
	for (size_t i = 0; kept && i < ret->ngroups; i++)
		kept[i] = all[i];
	ret->group = kept;
	free(all);
}

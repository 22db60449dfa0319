/* SPDX-License-Identifier: MIT */
/* Totals, and blocks by size and first word: of objects with a vtable, by their class. */
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

/* ---- kinds --------------------------------------------------------------------------------------------------------------- */

struct kinds { /* a list that is merged whenever it is full */
	struct pmodule_heap_group *at;
	size_t n, cap;
};

static void merge_all(struct kinds *k)
{
	if (k->n)
		qsort(k->at, k->n, sizeof(*k->at), by_kind);
	k->n = merge(k->at, k->n);
}

static bool make_room(struct kinds *k)
{
	if (k->n < k->cap)
		return true;
	merge_all(k);
	if (k->n < k->cap / 2)
		return true;
	const size_t cap = k->cap ? 2 * k->cap : 16384;
	struct pmodule_heap_group *more = realloc(k->at, cap * sizeof(*more));
	if (!more)
		return false;
	k->at = more;
	k->cap = cap;
	return true;
}

/* The kinds of the candidates, or of all that is in use. */
static void collect(struct dp_heap_survey *h, bool of_lost, struct kinds *k)
{
	for (size_t i = 0; i < h->nblocks && !dp_heap_is_over(h); i++) {
		const struct dp_heap_block *b = &h->block[i];
		if (of_lost ? b->state != DP_HEAP_UNREACHED : b->state == DP_HEAP_CACHED)
			continue;
		if (!make_room(k)) {
			h->failed = true;
			return;
		}
		const uint64_t size = dp_heap_size(b);
		k->at[k->n++] = (struct pmodule_heap_group){.size = size,
		                                            .count = 1,
		                                            .bytes = size,
		                                            .within = b->is_within,
		                                            .address = b->at,
		                                            .first = first_word(h, b)};
	}
	merge_all(k);
}

static const struct pmodule_heap_group *groups(struct dp_heap_survey *h, bool of_lost, struct dp_arena *arena, size_t *n)
{
	struct kinds k = {0};
	collect(h, of_lost, &k);
	if (k.n)
		qsort(k.at, k.n, sizeof(*k.at), by_bytes);
	*n = k.n < MOST_GROUPS ? k.n : MOST_GROUPS;
	struct pmodule_heap_group *kept = *n ? dp_arena_alloc(arena, *n * sizeof(*kept)) : NULL;
	h->failed |= *n && !kept;
	for (size_t i = 0; kept && i < *n; i++)
		kept[i] = k.at[i];
	free(k.at);
	return kept;
}

void dp_heap_report(struct dp_heap_survey *h, struct dp_arena *arena, struct pmodule_heap *ret)
{
	count(h, ret);
	ret->group = groups(h, true, arena, &ret->ngroups);
	ret->used_group = groups(h, false, arena, &ret->nused_groups);
}

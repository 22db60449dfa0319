/* SPDX-License-Identifier: MIT */
/*
 * Free blocks that look as if they were in use: those in a thread's cache (tcache_perthread_struct, itself a block), and in the
 * fast lists of an arena. Since 2.32 a link is xored with the address that it is at, shifted by 12.
 */
#include "pmodules/heap/heap_internal.h"

#include <string.h>

#define BINS      64u
#define FASTBINS  10u
#define MOST_LIST 65536u

enum { FAST = 16, TOP = 96, UNSORTED = 112, NEXT = 2160 }; /* offsets in struct malloc_state */

struct list { /* of blocks of one size; `to_chunk`: links lead to the chunk, not to the memory */
	uint64_t first, chunk_size;
	bool to_chunk;
};

static struct dp_heap_block *element(const struct dp_heap_survey *h, const struct list *l, uint64_t link)
{
	struct dp_heap_block *b = link ? dp_heap_block_of(h, link + (l->to_chunk ? DP_HEAP_HEADER : 0)) : NULL;
	return b && dp_heap_chunk_size(b) == l->chunk_size ? b : NULL;
}

/* Marks the list's blocks, or (!mark) only counts them. *ends: the last link is NULL. */
static unsigned follow(struct dp_heap_survey *h, const struct list *l, bool mark, bool *ends)
{
	unsigned n = 0;
	uint64_t at = l->first;
	struct dp_heap_block *b;
	while ((b = element(h, l, at)) != NULL && n < MOST_LIST) {
		uint64_t link;
		if (!dp_heap_get(h, b->at, &link, sizeof(link)))
			break;
		if (mark)
			b->state = DP_HEAP_CACHED;
		n++;
		const uint64_t clear = link ^ (b->at >> 12);
		at = clear == 0 || element(h, l, clear) ? clear : link;
	}
	*ends = at == 0;
	return n;
}

/* ---- caches ------------------------------------------------------------------------------------------------------------- */

struct cache {
	unsigned count[BINS];
	uint64_t entry[BINS];
};

static bool read_cache(struct dp_heap_survey *h, const struct dp_heap_block *b, struct cache *ret)
{
	uint16_t wide[BINS];
	uint8_t narrow[BINS];
	const bool is_wide = dp_heap_chunk_size(b) == 0x290; /* since 2.30 */
	if (!is_wide && dp_heap_chunk_size(b) != 0x250)
		return false;
	if (!dp_heap_get(h, b->at, is_wide ? (void *)wide : narrow, is_wide ? sizeof(wide) : sizeof(narrow)) ||
	    !dp_heap_get(h, b->at + (is_wide ? sizeof(wide) : sizeof(narrow)), ret->entry, sizeof(ret->entry)))
		return false;
	for (unsigned i = 0; i < BINS; i++)
		ret->count[i] = is_wide ? wide[i] : narrow[i];
	return true;
}

static struct list bin_of(const struct cache *c, unsigned i)
{
	return (struct list){.first = c->entry[i], .chunk_size = 32 + 16 * (uint64_t)i};
}

/*
 * Every list ends, and has as many blocks as its count says; in one of them a thread may be at work. Empty ones look like any
 * block of zeros: only a heap's first block is known to be one.
 */
static bool is_cache(struct dp_heap_survey *h, const struct cache *c, bool is_first)
{
	unsigned off = 0, blocks = 0;
	for (unsigned i = 0; i < BINS; i++) {
		bool ends;
		const struct list l = bin_of(c, i);
		const unsigned n = follow(h, &l, false, &ends);
		if (!ends)
			return false;
		off += n > c->count[i] ? n - c->count[i] : c->count[i] - n;
		blocks += n;
	}
	return (blocks || is_first) && off <= 1;
}

static bool is_first(const struct dp_heap_survey *h, size_t i)
{
	const struct dp_heap_region *r = dp_heap_region_at(h, h->block[i].at);
	return r && r->first == i;
}

static void mark_caches(struct dp_heap_survey *h)
{
	for (size_t i = 0; i < h->nblocks && !dp_heap_is_over(h); i++) {
		struct cache c;
		bool ends;
		if (!read_cache(h, &h->block[i], &c) || !is_cache(h, &c, is_first(h, i)))
			continue;
		h->knows_caches = true;
		for (unsigned k = 0; k < BINS; k++) {
			const struct list l = bin_of(&c, k);
			follow(h, &l, true, &ends);
		}
	}
}

/* ---- fast lists --------------------------------------------------------------------------------------------------------- */

/* Its unsorted list leads to itself, or into a heap. */
static bool is_arena(struct dp_heap_survey *h, uint64_t at, uint64_t top)
{
	uint64_t word[4]; /* top, last_remainder, the unsorted list's fd and bk */
	if (!dp_heap_get(h, at + TOP, word, sizeof(word)) || word[0] != top)
		return false;
	for (int i = 2; i < 4; i++)
		if (word[i] != at + TOP && !dp_heap_region_at(h, word[i]))
			return false;
	return true;
}

static void mark_fast(struct dp_heap_survey *h, uint64_t arena)
{
	uint64_t first[FASTBINS];
	bool ends;
	if (!dp_heap_get(h, arena + FAST, first, sizeof(first)))
		return;
	for (unsigned i = 0; i < FASTBINS; i++) {
		const struct list l = {first[i], 32 + 16 * (uint64_t)i, true};
		follow(h, &l, true, &ends);
	}
}

struct search { /* for the main arena, in the C library's data: the word that leads to the heap's free rest is in it */
	uint64_t top, found;
};

static void look_for_arena(struct dp_heap_survey *h, const struct dp_heap_words *w, void *data)
{
	struct search *s = data;
	for (size_t i = 0; i < w->n && !s->found; i++)
		if (w->word[i] == s->top && is_arena(h, w->addr + 8 * i - TOP, s->top))
			s->found = w->addr + 8 * i - TOP;
}

static uint64_t main_arena(struct dp_heap_survey *h, uint64_t top)
{
	for (size_t i = 0; i < dp_image_nmaps(h->m->image); i++) {
		const struct dp_map *m = dp_image_map(h->m->image, i);
		if (!dp_heap_is_private_data(m) || *m->path != '/')
			continue;
		struct search s = {.top = top};
		dp_heap_words(h, m->start.v, m->end.v, look_for_arena, &s);
		if (s.found)
			return s.found;
	}
	return 0;
}

void dp_heap_lists(struct dp_heap_survey *h)
{
	mark_caches(h);
	h->knows_fast = true;
	for (size_t i = 0; i < h->nregions && !dp_heap_is_over(h); i++) {
		const struct dp_heap_region *r = &h->region[i];
		const uint64_t arena = r->is_main && r->top ? main_arena(h, r->top) : r->arena;
		if (r->is_main && arena)
			h->main_arena = arena;
		if (arena)
			mark_fast(h, arena);
		else if (r->is_main && r->n)
			h->knows_fast = false;
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * The chunks of one heap, in order: each begins with the size of the chunk before it (if that is free) and its own size, with
 * flags in the low bits: 1 the chunk before it is in use, 2 it has a mapping of its own, 4 it is not of the main arena. The last
 * one is the arena's free rest ("top"). A heap that does not grow any more ends with fences: chunks of 16 bytes or none.
 */
#include "pmodules/heap/heap_internal.h"

#include <stdlib.h>

#define MOST_BLOCKS (UINT32_C(1) << 23)
#define LEAST       32u
#define FENCE       16u
#define LOOKED      (UINT64_C(64) << 10) /* a static program has something else first: here the first chunk is looked for */

enum { IN_USE_BEFORE = 1, MMAPPED = 2, FLAGS = 7 };

static void add(struct dp_heap_survey *h, uint64_t chunk, uint64_t size)
{
	if (h->nblocks == h->block_cap) {
		const size_t cap = h->block_cap ? 2 * h->block_cap : 4096;
		struct dp_heap_block *more = cap <= MOST_BLOCKS ? realloc(h->block, cap * sizeof(*more)) : NULL;
		if (!more) {
			h->failed = true;
			return;
		}
		h->block = more;
		h->block_cap = cap;
	}
	h->block[h->nblocks++] = (struct dp_heap_block){.at = chunk + DP_HEAP_HEADER, .units = (uint32_t)(size / 16)};
}

/* Does this header fit behind the chunk `last`, of `size` bytes (0: there is none)? */
static bool fits(const struct dp_heap_region *r, uint64_t at, const uint64_t header[2], uint64_t size)
{
	const uint64_t n = header[1] & ~(uint64_t)FLAGS;
	if (size && !(header[1] & IN_USE_BEFORE) && header[0] != size)
		return false;
	if (header[1] & MMAPPED)
		return false;
	return n == 0 || n == FENCE || (n >= LEAST && n % 16 == 0 && n <= r->end - at);
}

static void walk_from(struct dp_heap_survey *h, struct dp_heap_region *r)
{
	uint64_t header[2], at = r->from, last = 0, size = 0;
	h->nblocks = r->first;
	r->top = 0;
	r->is_damaged = true;
	while (at < r->end) {
		if (!dp_heap_get(h, at, header, sizeof(header)) || !fits(r, at, header, size))
			break;
		const uint64_t n = header[1] & ~(uint64_t)FLAGS;
		/* A rest too small for a chunk, in front of a fence without a size, looks as if it were in use. */
		if (size && (header[1] & IN_USE_BEFORE) && !(n == 0 && size <= LEAST))
			add(h, last, size);
		last = at;
		size = n;
		if (n <= FENCE) {
			r->is_damaged = false;
			break;
		}
		at += n;
	}
	if (at == r->end && size) {
		r->top = last;
		r->is_damaged = false;
	}
	/* Of a heap that ends in fences the rest is foreign. Of a damaged one the last chunk is doubtful. */
	r->walked = at == r->end ? r->end : last ? last : r->from;
	r->n = h->nblocks - r->first;
}

/* The first chunk of a heap since 2.26: a thread's cache. */
static bool is_cache_size(uint64_t field)
{
	const uint64_t size = field & ~(uint64_t)FLAGS;
	return size == 0x290 || size == 0x250 || size == 0x300;
}

/* The main heap: from its start, or from what looks like malloc's first chunk and leads to the end. */
static void walk_main(struct dp_heap_survey *h, struct dp_heap_region *r)
{
	uint64_t header[2];
	walk_from(h, r);
	if (!r->is_damaged && r->n)
		return;
	for (uint64_t at = r->start; at < r->end && at - r->start < LOOKED; at += 16) {
		if (!dp_heap_get(h, at, header, sizeof(header)) || !is_cache_size(header[1]))
			continue;
		r->from = at;
		walk_from(h, r);
		if (r->n)
			return;
	}
	/* It does not begin like malloc's: no block is known. */
	h->nblocks = r->first;
	r->n = 0;
	r->walked = r->from = r->start;
}

/* For each page the first block that begins in it or behind it. */
static void index_pages(struct dp_heap_survey *h, struct dp_heap_region *r)
{
	const size_t pages = (size_t)((r->end - r->from) / DP_HEAP_PAGE) + 2;
	size_t b = 0;
	r->page = r->n ? malloc(pages * sizeof(*r->page)) : NULL;
	h->failed |= r->n && !r->page;
	for (size_t i = 0; r->page && i < pages; i++) {
		while (b < r->n && h->block[r->first + b].at < r->from + i * DP_HEAP_PAGE)
			b++;
		r->page[i] = (uint32_t)b;
	}
}

void dp_heap_walk(struct dp_heap_survey *h, struct dp_heap_region *r)
{
	r->first = h->nblocks;
	if (r->is_large) {
		add(h, r->start, r->end - r->start);
		r->n = h->nblocks - r->first;
		r->walked = r->end;
		if (r->n)
			h->block[r->first].is_large = true;
		return;
	}
	(r->is_main ? walk_main : walk_from)(h, r);
	index_pages(h, r);
}

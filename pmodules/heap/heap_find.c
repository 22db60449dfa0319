/* SPDX-License-Identifier: MIT */
/*
 * Where malloc's memory is: the main heap (brk), the heaps of other arenas (aligned to 64 MiB, begin with a heap_info), and large
 * blocks with a mapping of their own (begin a page, their size is in whole pages).
 */
#include "pmodules/heap/heap_internal.h"

#include <stdlib.h>
#include <string.h>

#define LARGE_LEAST (UINT64_C(128) << 10) /* malloc's usual threshold for a mapping of its own */

static struct dp_heap_region *add(struct dp_heap_survey *h, uint64_t start, uint64_t end)
{
	if (h->nregions == h->region_cap) {
		const size_t cap = h->region_cap ? 2 * h->region_cap : 64;
		struct dp_heap_region *more = realloc(h->region, cap * sizeof(*more));
		if (!more) {
			h->failed = true;
			return NULL;
		}
		h->region = more;
		h->region_cap = cap;
	}
	h->region[h->nregions] = (struct dp_heap_region){.start = start, .end = end, .from = start};
	return &h->region[h->nregions++];
}

/* A heap of an arena at this address, which is aligned: its end, or 0. */
static uint64_t add_arena(struct dp_heap_survey *h, uint64_t at, uint64_t end)
{
	uint64_t info[3]; /* ar_ptr, prev, size */
	if (!dp_heap_get(h, at, info, sizeof(info)))
		return 0;
	const uint64_t in = info[0] % DP_HEAP_ARENA; /* sizeof(struct heap_info), before and since 2.35 */
	const bool is_first = !info[1] && info[0] == at + in;
	if ((in != 0x20 && in != 0x30) || (!is_first && (!info[1] || info[1] % DP_HEAP_ARENA)) || !info[2] ||
	    info[2] % DP_HEAP_PAGE || info[2] > DP_HEAP_ARENA || info[2] > end - at)
		return 0;
	struct dp_heap_region *r = add(h, at, at + info[2]);
	if (!r)
		return 0;
	r->from = at + in + (is_first ? (DP_HEAP_STATE + 15) & ~UINT64_C(15) : 0);
	r->arena = is_first ? info[0] : 0;
	return r->end;
}

/* A large block at this page: its end, or 0. `is_likely`: a mapping begins here, or another such block ends. */
static uint64_t add_large(struct dp_heap_survey *h, uint64_t at, uint64_t end, bool is_likely)
{
	uint64_t header[2];
	if (!dp_heap_get(h, at, header, sizeof(header)) || header[0] || (header[1] & 7) != 2)
		return 0;
	const uint64_t size = header[1] - 2;
	if (!size || size % DP_HEAP_PAGE || size > end - at || (!is_likely && size < LARGE_LEAST) || size / 16 > UINT32_MAX)
		return 0;
	struct dp_heap_region *r = add(h, at, at + size);
	if (!r)
		return 0;
	r->is_large = true;
	return r->end;
}

static void look_into(struct dp_heap_survey *h, uint64_t start, uint64_t end)
{
	uint64_t at = start, known = start, to;
	while (dp_heap_filled(h, &at, end, &to) && !dp_heap_is_over(h)) {
		while (at < to && !dp_heap_is_over(h)) {
			uint64_t behind = at % DP_HEAP_ARENA ? 0 : add_arena(h, at, end);
			if (!behind)
				behind = add_large(h, at, end, at == known);
			known = behind ? behind : known;
			at = behind ? behind : at + DP_HEAP_PAGE;
		}
	}
}

static void add_main(struct dp_heap_survey *h, const struct dp_map *m)
{
	struct dp_heap_region *last = h->nregions ? &h->region[h->nregions - 1] : NULL;
	if (last && last->is_main && last->end == m->start.v) {
		last->end = m->end.v;
		return;
	}
	struct dp_heap_region *r = add(h, m->start.v, m->end.v);
	if (r)
		r->is_main = true;
}

void dp_heap_find(struct dp_heap_survey *h)
{
	for (size_t i = 0; i < dp_image_nmaps(h->m->image) && !dp_heap_is_over(h); i++) {
		const struct dp_map *m = dp_image_map(h->m->image, i);
		if (!dp_heap_is_private_data(m))
			continue;
		if (!strcmp(m->path, "[heap]"))
			add_main(h, m);
		else if (!*m->path)
			look_into(h, m->start.v, m->end.v);
	}
	for (size_t i = 0; i < h->nregions && !dp_heap_is_over(h); i++)
		dp_heap_walk(h, &h->region[i]);
}

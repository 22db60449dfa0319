/* SPDX-License-Identifier: MIT */
/*
 * Marks from the roots. Any aligned word that is an address in a block counts, wherever in the block, also right behind it (the
 * end of a range). Roots: registers; private memory that can be written (data of modules, stacks from the stack pointer on,
 * thread-locals, anonymous mappings), is anonymous, or was written before it became read-only; of heaps only what is not known as
 * chunks. Not: memory shared with others.
 */
#include "pmodules/heap/heap_internal.h"

#include <stdlib.h>
#include <string.h>

#define RED_ZONE UINT64_C(128)

/* ---- from an address to its block ---------------------------------------------------------------------------------------- */

const struct dp_heap_region *dp_heap_region_at(const struct dp_heap_survey *h, uint64_t addr)
{
	size_t low = 0, high = h->nregions;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (addr >= h->region[middle].end)
			low = middle + 1;
		else
			high = middle;
	}
	return low < h->nregions && addr >= h->region[low].start ? &h->region[low] : NULL;
}

/* The region's last block that begins at `addr` or before it. */
static struct dp_heap_block *block_before(const struct dp_heap_survey *h, const struct dp_heap_region *r, uint64_t addr)
{
	size_t low = 0, high = r->n;
	if (r->page && addr >= r->from) {
		const size_t page = (size_t)((addr - r->from) / DP_HEAP_PAGE);
		low = r->page[page];
		high = r->page[page + 1];
	}
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (h->block[r->first + middle].at <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &h->block[r->first + low - 1] : NULL;
}

struct dp_heap_block *dp_heap_block_at(const struct dp_heap_survey *h, uint64_t addr)
{
	if (!h->nregions || addr < h->region[0].start || addr >= h->region[h->nregions - 1].end)
		return NULL;
	const struct dp_heap_region *r = dp_heap_region_at(h, addr);
	struct dp_heap_block *b = r ? block_before(h, r, addr) : NULL;
	return b && addr - b->at < dp_heap_chunk_size(b) ? b : NULL;
}

struct dp_heap_block *dp_heap_block_of(const struct dp_heap_survey *h, uint64_t at)
{
	struct dp_heap_block *b = dp_heap_block_at(h, at);
	return b && b->at == at ? b : NULL;
}

/* ---- marking ------------------------------------------------------------------------------------------------------------- */

static void push(struct dp_heap_survey *h, const struct dp_heap_block *b)
{
	if (h->nstack == h->stack_cap) {
		const size_t cap = h->stack_cap ? 2 * h->stack_cap : 4096;
		uint32_t *more = realloc(h->stack, cap * sizeof(*more));
		if (!more) {
			h->failed = true;
			return;
		}
		h->stack = more;
		h->stack_cap = cap;
	}
	h->stack[h->nstack++] = (uint32_t)(b - h->block);
}

static void mark_words(struct dp_heap_survey *h, const struct dp_heap_words *w, void *data)
{
	(void)data;
	for (size_t i = 0; i < w->n; i++) {
		struct dp_heap_block *b = dp_heap_block_at(h, w->word[i]);
		if (!b || b->state != DP_HEAP_UNREACHED)
			continue;
		b->state = DP_HEAP_REACHED;
		push(h, b);
	}
}

/* ---- roots --------------------------------------------------------------------------------------------------------------- */

/* Data that the loader has made read-only after it was relocated: in front of the file's other data. */
static bool is_relro(const struct dp_image *image, size_t i)
{
	const struct dp_map *m = dp_image_map(image, i),
	                    *behind = i + 1 < dp_image_nmaps(image) ? dp_image_map(image, i + 1) : NULL;
	return *m->path == '/' && !m->exec && behind && behind->write && behind->start.v == m->end.v &&
	       !strcmp(behind->path, m->path);
}

static bool is_root(const struct dp_image *image, size_t i)
{
	const struct dp_map *m = dp_image_map(image, i);
	const bool is_device = !strncmp(m->path, "/dev/", 5) && strncmp(m->path, "/dev/zero", 9) != 0;
	return m->read && !m->shared && !is_device && (m->write || !*m->path || is_relro(image, i));
}

/* What is below a stack pointer is not in use; in other mappings it may be: only a stack has a guard page below it. */
static uint64_t begin_of(const struct dp_heap_survey *h, size_t i)
{
	const struct dp_map *m = dp_image_map(h->m->image, i), *below = i ? dp_image_map(h->m->image, i - 1) : NULL;
	const bool is_guarded = below && below->end.v == m->start.v && !below->read && !below->write && !below->exec;
	uint64_t least = m->end.v;
	for (size_t t = 0; t < h->m->nsp; t++) {
		const uint64_t sp = h->m->sp[t];
		if (sp >= m->start.v && sp < least)
			least = sp;
	}
	if (least == m->end.v || (!is_guarded && strcmp(m->path, "[stack]") != 0) || least - m->start.v < RED_ZONE)
		return m->start.v;
	return least - RED_ZONE;
}

/* A heap's known part, with the arena's own data in front. */
static uint64_t begin_of_known(const struct dp_heap_region *r)
{
	return r->arena ? r->start : r->from;
}

/* Around the chunks of heaps. */
static void mark_from(struct dp_heap_survey *h, uint64_t from, uint64_t end)
{
	for (size_t i = 0; i < h->nregions && from < end; i++) {
		const struct dp_heap_region *r = &h->region[i];
		const uint64_t behind = r->is_damaged || !r->n ? r->walked : r->end;
		if (behind <= from || begin_of_known(r) >= end || behind <= r->from)
			continue;
		if (begin_of_known(r) > from)
			dp_heap_words(h, from, begin_of_known(r), mark_words, NULL);
		from = behind;
	}
	if (from < end)
		dp_heap_words(h, from, end, mark_words, NULL);
}

/*
 * Malloc's own lists are no roots: they lead to the headers of free chunks, which overlap the last 8 bytes of the block before.
 */
static void mark_around(struct dp_heap_survey *h, uint64_t from, uint64_t end)
{
	const uint64_t arena = h->main_arena, behind = arena + DP_HEAP_STATE;
	if (!arena || behind <= from || arena >= end) {
		mark_from(h, from, end);
		return;
	}
	mark_from(h, from, arena);
	mark_from(h, behind, end);
}

static void mark_roots(struct dp_heap_survey *h)
{
	const struct dp_heap_words registers = {0, h->m->word, h->m->nwords};
	mark_words(h, &registers, NULL);
	for (size_t i = 0; i < dp_image_nmaps(h->m->image) && !dp_heap_is_over(h); i++) {
		if (is_root(h->m->image, i))
			mark_around(h, begin_of(h, i), dp_image_map(h->m->image, i)->end.v);
	}
}

void dp_heap_mark(struct dp_heap_survey *h)
{
	mark_roots(h);
	while (h->nstack && !dp_heap_is_over(h)) {
		const struct dp_heap_block *b = &h->block[h->stack[--h->nstack]];
		dp_heap_words(h, b->at, b->at + dp_heap_size(b), mark_words, NULL);
	}
}

/* ---- candidates that others point to --------------------------------------------------------------------------------------- */

static void mark_others(struct dp_heap_survey *h, const struct dp_heap_words *w, void *self)
{
	for (size_t i = 0; i < w->n; i++) {
		struct dp_heap_block *b = dp_heap_block_at(h, w->word[i]);
		if (b && b != self && b->state == DP_HEAP_UNREACHED)
			b->is_within = true;
	}
}

void dp_heap_mark_within(struct dp_heap_survey *h)
{
	for (size_t i = 0; i < h->nblocks && !dp_heap_is_over(h); i++) {
		struct dp_heap_block *b = &h->block[i];
		if (b->state == DP_HEAP_UNREACHED)
			dp_heap_words(h, b->at, b->at + dp_heap_size(b), mark_others, b);
	}
}

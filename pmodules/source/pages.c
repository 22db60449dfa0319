/* SPDX-License-Identifier: MIT */
#include "pmodules/source/pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_SLOTS 1024u
#define BLOCK       (UINT64_C(256) * DP_PAGE_BYTES)

void dp_pages_init(struct dp_page_cache *p, uint64_t most_bytes)
{
	*p = (struct dp_page_cache){.most = (size_t)(most_bytes / DP_PAGE_BYTES)};
}

void dp_pages_fini(struct dp_page_cache *p)
{
	while (p->block) {
		struct dp_page_block *b = p->block;
		p->block = b->next;
		munmap(b->bytes, b->size);
		free(b);
	}
	free(p->slot);
	*p = (struct dp_page_cache){0};
}

static size_t slot_of(const struct dp_page_cache *p, uint64_t addr)
{
	size_t i = (size_t)((addr >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (p->cap - 1);
	while (p->slot[i].addr && p->slot[i].addr != addr)
		i = (i + 1) & (p->cap - 1);
	return i;
}

struct dp_kept_page *dp_pages_find(const struct dp_page_cache *p, uint64_t addr)
{
	if (!p->cap || !addr)
		return NULL;
	struct dp_kept_page *page = &p->slot[slot_of(p, addr)];
	return page->addr ? page : NULL;
}

static bool grow(struct dp_page_cache *p)
{
	struct dp_page_cache larger = *p;
	larger.cap = p->cap ? 2 * p->cap : FIRST_SLOTS;
	larger.slot = calloc(larger.cap, sizeof(*larger.slot));
	if (!larger.slot)
		return false;
	for (size_t i = 0; i < p->cap; i++)
		if (p->slot[i].addr)
			larger.slot[slot_of(&larger, p->slot[i].addr)] = p->slot[i];
	free(p->slot);
	*p = larger;
	return true;
}

struct dp_kept_page *dp_pages_at(struct dp_page_cache *p, uint64_t addr)
{
	struct dp_kept_page *page = dp_pages_find(p, addr);
	if (page)
		return page;
	if (!addr || (p->cap < 2 * (p->n + 1) && !grow(p)))
		return NULL;
	page = &p->slot[slot_of(p, addr)];
	p->n++;
	page->addr = addr;
	return page;
}

static bool add_block(struct dp_page_cache *p, uint64_t size, int flags)
{
	struct dp_page_block *b = malloc(sizeof(*b));
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	if (!b || at == MAP_FAILED) {
		free(b);
		if (at != MAP_FAILED)
			munmap(at, size);
		return false;
	}
	*b = (struct dp_page_block){p->block, at, size, 0};
	p->block = b;
	return true;
}

uint8_t *dp_pages_room(struct dp_page_cache *p, size_t n)
{
	const uint64_t size = n * DP_PAGE_BYTES;
	if (n > p->most - p->kept)
		return NULL;
	if ((!p->block || p->block->size - p->block->used < size) && !add_block(p, size > BLOCK ? size : BLOCK, 0))
		return NULL;
	uint8_t *bytes = p->block->bytes + p->block->used;
	p->block->used += size;
	p->kept += n;
	return bytes;
}

void dp_pages_give_back(struct dp_page_cache *p, size_t n)
{
	p->block->used -= n * DP_PAGE_BYTES;
	p->kept -= n;
}

void dp_pages_reserve(struct dp_page_cache *p, size_t n)
{
	const size_t most = p->most - p->kept, wanted = n < most ? n : most;
	if (wanted && (!p->block || p->block->size - p->block->used < wanted * DP_PAGE_BYTES))
		add_block(p, wanted * DP_PAGE_BYTES, MAP_POPULATE);
}

void dp_pages_age(struct dp_page_cache *p)
{
	for (size_t i = 0; i < p->cap; i++) {
		struct dp_kept_page *page = &p->slot[i];
		page->used = false;
		if (!page->addr || page->constant)
			continue;
		if (page->state == DP_PAGE_ABSENT)
			page->bytes = NULL;
		page->state = DP_PAGE_STALE;
		page->late = false;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct dp_kept_page *const *x = a, *const *y = b;
	return ((*x)->addr > (*y)->addr) - ((*x)->addr < (*y)->addr);
}

struct dp_kept_page **dp_pages_sorted(const struct dp_page_cache *p, size_t *n)
{
	struct dp_kept_page **list = malloc((p->n + 1) * sizeof(struct dp_kept_page *));
	*n = 0;
	for (size_t i = 0; list && i < p->cap; i++)
		if (p->slot[i].addr)
			list[(*n)++] = &p->slot[i];
	if (list)
		qsort(list, *n, sizeof(*list), by_address);
	return list;
}

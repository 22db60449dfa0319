/* SPDX-License-Identifier: MIT */
#include "trampoline/extents.h"

#include <stdlib.h>
#include <string.h>

#define FILLER 0xcc /* int3: nothing runs into unused bytes, and if it did, it would stop there */

struct page {
	uint64_t addr;
	size_t nused;
	uint8_t bytes[DP_PAGE];
	uint64_t used[DP_PAGE / 64];
};

struct dp_pages {
	struct dp_space *space;
	struct page **page; /* ascending */
	size_t n, cap;
	struct dp_extent *extent; /* the last answer of dp_pages_extents() */
	size_t nextents;
};

struct dp_error *dp_pages_create(struct dp_space *space, struct dp_pages **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return dp_error(DP_TAG_NOMEM, "out of memory for stub pages");
	(*ret)->space = space;
	return NULL;
}

static void free_extents(struct dp_pages *pages)
{
	for (size_t i = 0; i < pages->nextents; i++)
		free(pages->extent[i].bytes);
	free(pages->extent);
	pages->extent = NULL;
	pages->nextents = 0;
}

struct dp_pages *dp_pages_destroy(struct dp_pages *pages)
{
	if (!pages)
		return NULL;
	free_extents(pages);
	for (size_t i = 0; i < pages->n; i++)
		free(pages->page[i]);
	free(pages->page);
	free(pages);
	return NULL;
}

/* Index of the first page at or above `addr`. */
static size_t index_of(const struct dp_pages *pages, uint64_t addr)
{
	size_t lo = 0, hi = pages->n;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (pages->page[mid]->addr >= addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static struct page *page_at(const struct dp_pages *pages, uint64_t addr)
{
	size_t i = index_of(pages, dp_page_down(addr));
	return i < pages->n && pages->page[i]->addr == dp_page_down(addr) ? pages->page[i] : NULL;
}

static bool is_used(const struct page *page, uint64_t addr)
{
	size_t bit = addr % DP_PAGE;
	return page->used[bit / 64] >> (bit % 64) & 1;
}

/* The part of [addr, addr+n) in addr's page. */
static size_t part(uint64_t addr, size_t n)
{
	size_t room = DP_PAGE - addr % DP_PAGE;
	return n < room ? n : room;
}

bool dp_pages_fits(const struct dp_pages *pages, uint64_t addr, size_t n)
{
	while (n) {
		size_t here = part(addr, n);
		const struct page *page = page_at(pages, addr);
		if (!page && !dp_space_is_free(pages->space, dp_page_down(addr), dp_page_down(addr) + DP_PAGE))
			return false;
		for (size_t i = 0; page && i < here; i++)
			if (is_used(page, addr + i))
				return false;
		addr += here;
		n -= here;
	}
	return true;
}

static bool all_ours(const struct dp_pages *pages, uint64_t addr, size_t n)
{
	return page_at(pages, addr) && page_at(pages, addr + n - 1) && dp_pages_fits(pages, addr, n);
}

static bool find_in_page(const struct dp_pages *pages, const struct page *page, uint64_t lo, uint64_t hi, size_t n, uint64_t *ret)
{
	if (lo < page->addr)
		lo = page->addr;
	if (hi > page->addr + DP_PAGE - 1)
		hi = page->addr + DP_PAGE - 1;
	for (uint64_t at = lo; at <= hi; at++)
		if (!is_used(page, at) && all_ours(pages, at, n)) {
			*ret = at;
			return true;
		}
	return false;
}

bool dp_pages_find_used(const struct dp_pages *pages, uint64_t lo, uint64_t hi, size_t n, uint64_t *ret)
{
	for (size_t i = index_of(pages, dp_page_down(lo)); i < pages->n && pages->page[i]->addr <= hi; i++)
		if (pages->page[i]->nused + n <= DP_PAGE && find_in_page(pages, pages->page[i], lo, hi, n, ret))
			return true;
	return false;
}

static struct dp_error *insert_page(struct dp_pages *pages, uint64_t addr)
{
	if (pages->n == pages->cap) {
		size_t cap = pages->cap ? 2 * pages->cap : 16;
		struct page **grown = realloc(pages->page, cap * sizeof(struct page *));
		if (!grown)
			return dp_error(DP_TAG_NOMEM, "out of memory for stub pages");
		pages->page = grown;
		pages->cap = cap;
	}
	struct page *page = calloc(1, sizeof(*page));
	if (!page)
		return dp_error(DP_TAG_NOMEM, "out of memory for stub pages");
	struct dp_error *err = dp_space_reserve(pages->space, addr, addr + DP_PAGE);
	if (err) {
		free(page);
		return err;
	}
	page->addr = addr;
	memset(page->bytes, FILLER, sizeof(page->bytes));
	size_t i = index_of(pages, addr);
	memmove(&pages->page[i + 1], &pages->page[i], (pages->n - i) * sizeof(struct page *));
	pages->page[i] = page;
	pages->n++;
	return NULL;
}

static void drop_empty_page(struct dp_pages *pages, uint64_t addr)
{
	size_t i = index_of(pages, dp_page_down(addr));
	if (i == pages->n || pages->page[i]->addr != dp_page_down(addr) || pages->page[i]->nused)
		return;
	/* Out of memory here only means that the page stays reserved. */
	dp_space_release(pages->space, pages->page[i]->addr, pages->page[i]->addr + DP_PAGE);
	free(pages->page[i]);
	memmove(&pages->page[i], &pages->page[i + 1], (pages->n - i - 1) * sizeof(struct page *));
	pages->n--;
}

static void mark(struct page *page, uint64_t addr, size_t n)
{
	for (size_t bit = addr % DP_PAGE, end = bit + n; bit < end; bit++)
		page->used[bit / 64] |= UINT64_C(1) << (bit % 64);
	page->nused += n;
}

struct dp_error *dp_pages_put(struct dp_pages *pages, uint64_t addr, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;
	for (size_t done = 0; done < n;) {
		size_t here = part(addr + done, n - done);
		struct page *page = page_at(pages, addr + done);
		if (!page) {
			struct dp_error *err = insert_page(pages, dp_page_down(addr + done));
			if (err) {
				dp_pages_drop(pages, addr, done);
				return err;
			}
			page = page_at(pages, addr + done);
		}
		memcpy(page->bytes + (addr + done) % DP_PAGE, from + done, here);
		mark(page, addr + done, here);
		done += here;
	}
	return NULL;
}

void dp_pages_drop(struct dp_pages *pages, uint64_t addr, size_t n)
{
	while (n) {
		size_t here = part(addr, n);
		struct page *page = page_at(pages, addr);
		for (size_t bit = addr % DP_PAGE, end = bit + here; page && bit < end; bit++)
			page->used[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
		if (page) {
			memset(page->bytes + addr % DP_PAGE, FILLER, here);
			page->nused -= here;
			drop_empty_page(pages, addr);
		}
		addr += here;
		n -= here;
	}
}

/* One extent from page `i` on; the index behind its last page. On out of memory extent->bytes stays NULL. */
static size_t merge(const struct dp_pages *pages, size_t i, struct dp_extent *extent)
{
	size_t end = i + 1;
	while (end < pages->n && pages->page[end]->addr == pages->page[end - 1]->addr + DP_PAGE)
		end++;
	extent->addr = pages->page[i]->addr;
	extent->n = (end - i) * DP_PAGE;
	extent->bytes = malloc(extent->n);
	for (size_t k = i; extent->bytes && k < end; k++)
		memcpy(extent->bytes + (k - i) * DP_PAGE, pages->page[k]->bytes, DP_PAGE);
	return end;
}

size_t dp_pages_extents(struct dp_pages *pages, const struct dp_extent **ret)
{
	free_extents(pages);
	*ret = NULL;
	pages->extent = calloc(pages->n ? pages->n : 1, sizeof(*pages->extent));
	if (!pages->extent)
		return 0;
	for (size_t i = 0; i < pages->n;) {
		i = merge(pages, i, &pages->extent[pages->nextents++]);
		if (!pages->extent[pages->nextents - 1].bytes) {
			free_extents(pages);
			return 0;
		}
	}
	*ret = pages->extent;
	return pages->nextents;
}

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
	uint64_t *addr;     /* of each page: what is looked at most, in one place */
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
	free(pages->addr);
	free(pages);
	return NULL;
}

/* Index of the first page at or above `addr`. */
static size_t index_of(const struct dp_pages *pages, uint64_t addr)
{
	size_t lo = 0, hi = pages->n;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (pages->addr[mid] >= addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static struct page *page_at(const struct dp_pages *pages, uint64_t addr)
{
	size_t i = index_of(pages, dp_page_down(addr));
	return i < pages->n && pages->addr[i] == dp_page_down(addr) ? pages->page[i] : NULL;
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

/* Bit k: the `n` bytes from 64 * word + k on are unused, as far as they lie in the page. */
static uint64_t starts(const struct page *page, size_t word, size_t n)
{
	uint64_t low = ~page->used[word], high = word + 1 < DP_PAGE / 64 ? ~page->used[word + 1] : UINT64_MAX, all = low;
	for (size_t k = 1; all && k < n; k++)
		all &= low >> k | high << (64 - k);
	return all;
}

static bool find_in_page(const struct dp_pages *pages, const struct page *page, uint64_t lo, uint64_t hi, size_t n, uint64_t *ret)
{
	size_t first = lo > page->addr ? (size_t)(lo - page->addr) : 0;
	size_t last = hi < page->addr + DP_PAGE - 1 ? (size_t)(hi - page->addr) : DP_PAGE - 1;
	for (size_t word = first / 64; word <= last / 64; word++) {
		uint64_t found = starts(page, word, n);
		if (word == first / 64)
			found &= UINT64_MAX << first % 64;
		for (; found; found &= found - 1) {
			size_t at = 64 * word + (size_t)__builtin_ctzll(found);
			if (at > last)
				return false;
			if (at + n > DP_PAGE && !all_ours(pages, page->addr + at, n))
				continue;
			*ret = page->addr + at;
			return true;
		}
	}
	return false;
}

size_t dp_pages_n(const struct dp_pages *pages)
{
	return pages->n;
}

size_t dp_pages_from(const struct dp_pages *pages, uint64_t addr)
{
	return index_of(pages, dp_page_down(addr));
}

const uint64_t *dp_pages_addrs(const struct dp_pages *pages)
{
	return pages->addr;
}

bool dp_pages_find_in(const struct dp_pages *pages, size_t i, uint64_t lo, uint64_t hi, size_t n, uint64_t *ret)
{
	return pages->page[i]->nused + n <= DP_PAGE && find_in_page(pages, pages->page[i], lo, hi, n, ret);
}

bool dp_pages_find_used(const struct dp_pages *pages, uint64_t lo, uint64_t hi, size_t n, uint64_t *ret)
{
	for (size_t i = dp_pages_from(pages, lo); i < pages->n && pages->addr[i] <= hi; i++)
		if (dp_pages_find_in(pages, i, lo, hi, n, ret))
			return true;
	return false;
}

bool dp_pages_read(const struct dp_pages *pages, uint64_t addr, void *bytes, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t here = part(addr + done, n - done);
		const struct page *page = page_at(pages, addr + done);
		if (!page)
			return false;
		memcpy((uint8_t *)bytes + done, page->bytes + (addr + done) % DP_PAGE, here);
		done += here;
	}
	return true;
}

static bool reserve(struct dp_pages *pages)
{
	if (pages->n < pages->cap)
		return true;
	size_t cap = pages->cap ? 2 * pages->cap : 16;
	struct page **page = realloc(pages->page, cap * sizeof(struct page *));
	if (page)
		pages->page = page;
	uint64_t *addr = page ? realloc(pages->addr, cap * sizeof(*addr)) : NULL;
	if (!addr)
		return false;
	pages->addr = addr;
	pages->cap = cap;
	return true;
}

static struct dp_error *insert_page(struct dp_pages *pages, uint64_t addr)
{
	if (!reserve(pages))
		return dp_error(DP_TAG_NOMEM, "out of memory for stub pages");
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
	memmove(&pages->addr[i + 1], &pages->addr[i], (pages->n - i) * sizeof(*pages->addr));
	pages->page[i] = page;
	pages->addr[i] = addr;
	pages->n++;
	return NULL;
}

static void drop_empty_page(struct dp_pages *pages, uint64_t addr)
{
	size_t i = index_of(pages, dp_page_down(addr));
	if (i == pages->n || pages->addr[i] != dp_page_down(addr) || pages->page[i]->nused)
		return;
	/* Out of memory here only means that the page stays reserved. */
	dp_space_release(pages->space, pages->page[i]->addr, pages->page[i]->addr + DP_PAGE);
	free(pages->page[i]);
	memmove(&pages->page[i], &pages->page[i + 1], (pages->n - i - 1) * sizeof(struct page *));
	memmove(&pages->addr[i], &pages->addr[i + 1], (pages->n - i - 1) * sizeof(*pages->addr));
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

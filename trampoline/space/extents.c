/* SPDX-License-Identifier: MIT */
#include "trampoline/space/extents.h"

#include <stdlib.h>
#include <string.h>

#define FILLER 0xcc /* int3: a thread that runs into unused bytes by error stops there */

#define NOT_LOOKED UINT8_MAX
#define SOMEWHERE  (UINT8_MAX - 1)

struct page {
	uint64_t addr;
	size_t nused;
	uint8_t bytes[DP_PAGE];
	uint64_t used[DP_PAGE / 64];
};

struct dp_pages {
	struct dp_space *space;
	struct page **page; /* ascending */
	uint64_t *addr;     /* of each page: read most often, so in an array of its own */
	uint32_t *number;   /* addr / DP_PAGE; its lower bits are enough */
	uint8_t *none;      /* of each page: no run of this many unused bytes starts in it; or NOT_LOOKED, SOMEWHERE */
	size_t n, cap;
	struct dp_extent *extent; /* the last result of dp_pages_extents() */
	size_t nextents;
};

struct dp_error *dp_pages_create(struct dp_space *space, struct dp_pages **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return dp_error_nomem();
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
	free(pages->number);
	free(pages->none);
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

/* The part of [addr, addr+n) in addr's page. */
static size_t part(uint64_t addr, size_t n)
{
	size_t room = DP_PAGE - addr % DP_PAGE;
	return n < room ? n : room;
}

/* The bits of [from, from + n) that are in word `word`. */
static uint64_t word_mask(size_t word, size_t from, size_t n)
{
	const size_t lo = from > 64 * word ? from - 64 * word : 0, hi = from + n - 64 * word;
	return (hi >= 64 ? UINT64_MAX : (UINT64_C(1) << hi) - 1) & UINT64_MAX << lo;
}

static bool any_used(const struct page *page, size_t from, size_t n)
{
	for (size_t word = from / 64; n && word <= (from + n - 1) / 64; word++)
		if (page->used[word] & word_mask(word, from, n))
			return true;
	return false;
}

bool dp_pages_fits(const struct dp_pages *pages, uint64_t addr, size_t n)
{
	while (n) {
		size_t here = part(addr, n);
		const struct page *page = page_at(pages, addr);
		if (!page && !dp_space_is_free(pages->space, dp_page_down(addr), dp_page_down(addr) + DP_PAGE))
			return false;
		if (page && any_used(page, addr % DP_PAGE, here))
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

/* Bit k: the `n` bytes from 64 * word + k on are unused, as far as they are in the page. `n` is at most 64. */
static uint64_t starts(const struct page *page, size_t word, size_t n)
{
	uint64_t low = ~page->used[word], high = word + 1 < DP_PAGE / 64 ? ~page->used[word + 1] : UINT64_MAX;
	for (size_t have = 1; low && have < n;) { /* runs of `have` bytes */
		const size_t more = n - have < have ? n - have : have;
		low &= low >> more | high << (64 - more);
		high &= high >> more; /* the bits shifted in do not matter: `n` bytes from the low word end in the high one */
		have += more;
	}
	return low;
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

uint64_t dp_pages_addr(const struct dp_pages *pages, size_t i)
{
	return pages->addr[i];
}

/*
 * The distances of a page's addresses have at most two values above their twelve lowest bits. Compares those, for many pages at a
 * time.
 */
size_t dp_pages_match(const struct dp_pages *pages, size_t i, size_t end, const struct dp_page_match *match)
{
	typedef uint32_t vector __attribute__((vector_size(16), aligned(4), may_alias));
	const uint32_t mask = match->mask / DP_PAGE, value = match->value / DP_PAGE & mask;
	const uint32_t last = (uint32_t)(match->origin / DP_PAGE), first = last + (match->origin % DP_PAGE != 0);
	const uint32_t *number = pages->number;
	for (; mask && i + 8 <= end; i += 8) {
		const vector a = *(const vector *)(number + i), b = *(const vector *)(number + i + 4);
		const vector hit = (vector)(((a - first) & mask) == value) | (vector)(((a - last) & mask) == value) |
		                   (vector)(((b - first) & mask) == value) | (vector)(((b - last) & mask) == value);
		if (hit[0] | hit[1] | hit[2] | hit[3])
			break;
	}
	while (i < end && ((number[i] - first) & mask) != value && ((number[i] - last) & mask) != value)
		i++;
	return i;
}

static bool anywhere_in(const struct page *page, size_t n)
{
	for (size_t word = 0; word < DP_PAGE / 64; word++)
		if (starts(page, word, n))
			return true;
	return false;
}

#define STEP 256u

uint16_t dp_pages_unused(const struct dp_pages *pages, size_t i, uint64_t addr, size_t n)
{
	const struct page *page = pages->page[i];
	const size_t at = addr % DP_PAGE, bit = at % 64;
	const uint64_t mask = n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
	uint16_t found = 0;
	if (pages->none[i] <= n || page->nused + n > DP_PAGE)
		return 0;
	for (size_t word = at / 64, k = 0; word < DP_PAGE / 64; word += STEP / 64, k++) {
		const uint64_t next = bit && word + 1 < DP_PAGE / 64 ? page->used[word + 1] << (64 - bit) : 0;
		const bool crosses = word + 1 == DP_PAGE / 64 && bit + n > 64;
		if (!((page->used[word] >> bit | next) & mask) && (!crosses || all_ours(pages, addr + STEP * k, n)))
			found |= (uint16_t)(1u << k);
	}
	if (!found && pages->none[i] == NOT_LOOKED)
		pages->none[i] = anywhere_in(page, n) ? SOMEWHERE : (uint8_t)n;
	return found;
}

/* Most pages are full: that is found once and cached. */
bool dp_pages_find_in(const struct dp_pages *pages, size_t i, uint64_t lo, uint64_t hi, size_t n, uint64_t *ret)
{
	uint8_t *none = &pages->none[i];
	if (*none <= n)
		return false;
	if (pages->page[i]->nused + n <= DP_PAGE && find_in_page(pages, pages->page[i], lo, hi, n, ret))
		return true;
	if (*none == NOT_LOOKED)
		*none = anywhere_in(pages->page[i], n) ? SOMEWHERE : (uint8_t)n;
	return false;
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
	if (addr)
		pages->addr = addr;
	uint32_t *number = addr ? realloc(pages->number, cap * sizeof(*number)) : NULL;
	if (number)
		pages->number = number;
	uint8_t *none = number ? realloc(pages->none, cap) : NULL;
	if (!none)
		return false;
	pages->none = none;
	pages->cap = cap;
	return true;
}

static struct dp_error *insert_page(struct dp_pages *pages, uint64_t addr)
{
	if (!reserve(pages))
		return dp_error_nomem();
	struct page *page = calloc(1, sizeof(*page));
	if (!page)
		return dp_error_nomem();
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
	memmove(&pages->number[i + 1], &pages->number[i], (pages->n - i) * sizeof(*pages->number));
	memmove(&pages->none[i + 1], &pages->none[i], pages->n - i);
	pages->page[i] = page;
	pages->addr[i] = addr;
	pages->number[i] = (uint32_t)(addr / DP_PAGE);
	pages->none[i] = NOT_LOOKED;
	pages->n++;
	return NULL;
}

static void drop_page(struct dp_pages *pages, size_t i)
{
	/* Out of memory here only means that the page stays reserved. */
	dp_space_release(pages->space, pages->page[i]->addr, pages->page[i]->addr + DP_PAGE);
	free(pages->page[i]);
	memmove(&pages->page[i], &pages->page[i + 1], (pages->n - i - 1) * sizeof(struct page *));
	memmove(&pages->addr[i], &pages->addr[i + 1], (pages->n - i - 1) * sizeof(*pages->addr));
	memmove(&pages->number[i], &pages->number[i + 1], (pages->n - i - 1) * sizeof(*pages->number));
	memmove(&pages->none[i], &pages->none[i + 1], pages->n - i - 1);
	pages->n--;
}

static void mark(struct page *page, size_t from, size_t n, bool used)
{
	for (size_t word = from / 64; n && word <= (from + n - 1) / 64; word++) {
		const uint64_t mask = word_mask(word, from, n);
		page->nused -= (size_t)__builtin_popcountll(page->used[word]);
		page->used[word] = used ? page->used[word] | mask : page->used[word] & ~mask;
		page->nused += (size_t)__builtin_popcountll(page->used[word]);
	}
}

/* Index of the page at `addr`, which is created if missing. */
static struct dp_error *own(struct dp_pages *pages, uint64_t addr, size_t *ret)
{
	*ret = index_of(pages, addr);
	return *ret < pages->n && pages->addr[*ret] == addr ? NULL : insert_page(pages, addr);
}

struct dp_error *dp_pages_put(struct dp_pages *pages, uint64_t addr, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;
	for (size_t done = 0, i; done < n;) {
		const size_t at = (addr + done) % DP_PAGE, here = part(addr + done, n - done);
		struct dp_error *err = own(pages, dp_page_down(addr + done), &i);
		if (err) {
			dp_pages_drop(pages, addr, done);
			return err;
		}
		memcpy(pages->page[i]->bytes + at, from + done, here);
		mark(pages->page[i], at, here, true);
		if (pages->none[i] == SOMEWHERE)
			pages->none[i] = NOT_LOOKED;
		done += here;
	}
	return NULL;
}

void dp_pages_drop(struct dp_pages *pages, uint64_t addr, size_t n)
{
	while (n) {
		const size_t here = part(addr, n), i = index_of(pages, dp_page_down(addr));
		if (i < pages->n && pages->addr[i] == dp_page_down(addr)) {
			mark(pages->page[i], addr % DP_PAGE, here, false);
			memset(pages->page[i]->bytes + addr % DP_PAGE, FILLER, here);
			pages->none[i] = NOT_LOOKED;
			if (!pages->page[i]->nused)
				drop_page(pages, i);
		}
		addr += here;
		n -= here;
	}
}

/* One extent from page `i` on; returns the index after its last page. When out of memory extent->bytes stays NULL. */
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

/* SPDX-License-Identifier: MIT */
/*
 * The pages with our code in the target, with a mark for each byte in use. Everything put can be dropped again, so that a planner
 * undoes half a probe by dropping what it put.
 */
#ifndef DP_TRAMPOLINE_SPACE_EXTENTS_H
#define DP_TRAMPOLINE_SPACE_EXTENTS_H

#include "trampoline/space/space.h"

struct dp_pages;
struct dp_error *dp_pages_create(struct dp_space *space, struct dp_pages **ret) DP_MUST_CHECK;
struct dp_pages *dp_pages_destroy(struct dp_pages *pages);
/* Whether [addr, addr+n) can be put: each byte is unused in a page of ours, or in a free page of the space. */
bool dp_pages_fits(const struct dp_pages *pages, uint64_t addr, size_t n);
/* The lowest address in [lo, hi] at which `n` unused bytes start in pages that are already ours. */
bool dp_pages_find_used(const struct dp_pages *pages, uint64_t lo, uint64_t hi, size_t n, uint64_t *ret);
struct dp_page_match { /* addresses whose distance from `origin` is `value` in the bits of `mask` */
	uint64_t origin;
	uint32_t mask, value;
};
/* The same for single pages: pages have indices, ascending by address, until the next put or drop. */
size_t dp_pages_n(const struct dp_pages *pages);
size_t dp_pages_from(const struct dp_pages *pages, uint64_t addr); /* the first that ends after `addr` */
uint64_t dp_pages_addr(const struct dp_pages *pages, size_t i);
/* The first page of [i, end) that may contain such an address, or `end`. */
size_t dp_pages_match(const struct dp_pages *pages, size_t i, size_t end, const struct dp_page_match *match);
/* Bit k: all of [addr + 256 k, addr + 256 k + n) is unused. addr is in page i, only bytes in that page count, n is at most 64. */
uint16_t dp_pages_unused(const struct dp_pages *pages, size_t i, uint64_t addr, size_t n);
bool dp_pages_find_in(const struct dp_pages *pages, size_t i, uint64_t lo, uint64_t hi, size_t n, uint64_t *ret);
/* Copies bytes of our pages. False if some are not in them. */
bool dp_pages_read(const struct dp_pages *pages, uint64_t addr, void *bytes, size_t n);
/*
 * Copies bytes to `addr`, where they must fit, or over bytes that were put before, which takes no memory; takes new pages from
 * the space as needed.
 */
struct dp_error *dp_pages_put(struct dp_pages *pages, uint64_t addr, const void *bytes, size_t n) DP_MUST_CHECK;
/* Undoes dp_pages_put(); pages without a used byte go back to the space. */
void dp_pages_drop(struct dp_pages *pages, uint64_t addr, size_t n);
size_t dp_pages_extents(struct dp_pages *pages, const struct dp_extent **ret);

#endif

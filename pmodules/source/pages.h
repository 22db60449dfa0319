/* SPDX-License-Identifier: MIT */
/*
 * Pages of somebody's memory, kept by their address. A page is known to be there (with its bytes), known not to be there, or not
 * known. STALE ones were read (or found missing: without bytes) before the moment that counts: they say where to look when it has
 * come.
 */
#ifndef DP_PMODULES_PAGES_H
#define DP_PMODULES_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_PAGE_BYTES UINT64_C(4096)

enum dp_page_state { DP_PAGE_UNKNOWN, DP_PAGE_STALE, DP_PAGE_HERE, DP_PAGE_ABSENT };
struct dp_kept_page {
	uint64_t addr; /* a multiple of DP_PAGE_BYTES; 0: the slot is empty (nothing is ever mapped there) */
	uint8_t *bytes;
	enum dp_page_state state;
	bool late;     /* not of the moment that counts */
	bool used;     /* somebody has asked for it */
	bool constant; /* nobody can write it: it is of every moment */
};
struct dp_pages {
	struct dp_kept_page *slot;
	size_t cap, n;
	struct dp_page_block {
		struct dp_page_block *next;
		uint8_t *bytes;
		size_t size, used;
	} * block;
	size_t kept, most; /* pages with bytes */
};

void dp_pages_init(struct dp_pages *p, uint64_t most_bytes);
void dp_pages_fini(struct dp_pages *p);
/* The page at `addr`, or NULL if nothing is known of it. */
struct dp_kept_page *dp_pages_find(const struct dp_pages *p, uint64_t addr);
/* The page at `addr`, made (UNKNOWN, without bytes) if it was not there, which moves all others; NULL without memory. */
struct dp_kept_page *dp_pages_at(struct dp_pages *p, uint64_t addr);
/* Room for `n` pages in a row; NULL if that is more than is to be kept. */
uint8_t *dp_pages_room(struct dp_pages *p, size_t n);
/* The last `n` pages of the room that was given last. */
void dp_pages_give_back(struct dp_pages *p, size_t n);
/* Makes sure that the next `n` pages of room are there, and are no page faults of ours when time counts. */
void dp_pages_reserve(struct dp_pages *p, size_t n);
/* A moment passes: what was known of pages becomes stale, but for what is constant. */
void dp_pages_age(struct dp_pages *p);
/* All that are not empty, ascending; malloc'ed, *n of them. NULL without memory. */
struct dp_kept_page **dp_pages_sorted(const struct dp_pages *p, size_t *n);

static inline uint64_t dp_page_of(uint64_t addr)
{
	return addr & ~(DP_PAGE_BYTES - 1);
}

#endif

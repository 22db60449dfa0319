/* SPDX-License-Identifier: MIT */
/*
 * Memory pages of a process, by address. A page is HERE (with bytes), ABSENT or UNKNOWN. A STALE page was read before the hold
 * (without bytes: it was missing); it says what to read during the hold.
 */
#ifndef DP_PMODULES_SOURCE_PAGES_H
#define DP_PMODULES_SOURCE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_PAGE_BYTES UINT64_C(4096)

enum dp_page_state { DP_PAGE_UNKNOWN, DP_PAGE_STALE, DP_PAGE_HERE, DP_PAGE_ABSENT };
struct dp_kept_page {
	uint64_t addr; /* a multiple of DP_PAGE_BYTES; 0: the slot is empty (nothing is ever mapped there) */
	uint8_t *bytes;
	enum dp_page_state state;
	bool late;     /* not of the moment of the hold */
	bool used;     /* it was asked for */
	bool constant; /* never written: the bytes are valid at any time */
};
struct dp_page_cache {
	struct dp_kept_page *slot;
	size_t cap, n;
	struct dp_page_block {
		struct dp_page_block *next;
		uint8_t *bytes;
		size_t size, used;
	} * block;
	size_t kept, most; /* pages with bytes */
};

void dp_pages_init(struct dp_page_cache *p, uint64_t most_bytes);
void dp_pages_fini(struct dp_page_cache *p);
/* The page at `addr`, or NULL if there is no entry. */
struct dp_kept_page *dp_pages_find(const struct dp_page_cache *p, uint64_t addr);
/* The page at `addr`; adds an UNKNOWN one, which moves all others. NULL: out of memory. */
struct dp_kept_page *dp_pages_at(struct dp_page_cache *p, uint64_t addr);
/* Room for `n` consecutive pages; NULL if that exceeds the limit. */
uint8_t *dp_pages_room(struct dp_page_cache *p, size_t n);
/* Returns the last `n` pages of the most recent room. */
void dp_pages_give_back(struct dp_page_cache *p, size_t n);
/* Allocates and touches the next `n` pages, so that there are no page faults during the hold. */
void dp_pages_reserve(struct dp_page_cache *p, size_t n);
/* Makes all pages stale, except constant ones. */
void dp_pages_age(struct dp_page_cache *p);
/* All pages in use, ascending; malloc'ed; *n of them. NULL: out of memory. */
struct dp_kept_page **dp_pages_sorted(const struct dp_page_cache *p, size_t *n);

static inline uint64_t dp_page_of(uint64_t addr)
{
	return addr & ~(DP_PAGE_BYTES - 1);
}

#endif

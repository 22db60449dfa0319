/* SPDX-License-Identifier: MIT */
/* Private to the planner: look-ups in the address model without taking, and releasing. All ranges are whole pages. */
#ifndef DP_TRAMPOLINE_SPACE_SPACE_H
#define DP_TRAMPOLINE_SPACE_SPACE_H

#include "trampoline/trampoline.h"

#define DP_PAGE UINT64_C(4096)

static inline uint64_t dp_page_down(uint64_t addr)
{
	return addr & ~(DP_PAGE - 1);
}

static inline uint64_t dp_page_up(uint64_t addr)
{
	return (addr + DP_PAGE - 1) & ~(DP_PAGE - 1);
}

static inline uint64_t dp_saturating_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static inline uint64_t dp_saturating_sub(uint64_t a, uint64_t b)
{
	return a < b ? 0 : a - b;
}

/* Like dp_space_alloc(), but takes nothing. */
bool dp_space_find(const struct dp_space *space, uint64_t lo, uint64_t hi, uint64_t near, uint64_t size, uint64_t *ret);
bool dp_space_is_free(const struct dp_space *space, uint64_t start, uint64_t end);
/* Releases what was taken: [start, end) is in one reserved range. False when out of memory (nothing changed). */
bool dp_space_release(struct dp_space *space, uint64_t start, uint64_t end);

#endif

/* SPDX-License-Identifier: MIT */
/* An address in the target. It has a type of its own, so that nothing dereferences it here by mistake (as rr's remote_ptr). */
#ifndef DP_BASE_ADDR_H
#define DP_BASE_ADDR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dp_addr {
	uint64_t v;
} dp_addr;

static inline dp_addr dp_addr_of(uint64_t v)
{
	return (dp_addr){v};
}

static inline dp_addr dp_addr_add(dp_addr a, int64_t off)
{
	return (dp_addr){a.v + (uint64_t)off};
}

static inline bool dp_addr_in(dp_addr a, dp_addr start, dp_addr end)
{
	return a.v >= start.v && a.v < end.v;
}

#endif

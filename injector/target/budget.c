/* SPDX-License-Identifier: MIT */
#include "injector/target/budget.h"

#include "agent/abi.h"

#define SHARE_MOST    (UINT64_C(64) << 20)
#define SPARE_THREADS 64u /* new threads that get a ring before other rings give memory back */

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t dp_budget_share(uint64_t left, uint64_t asked_ring)
{
	return min(left / 2, asked_ring > SHARE_MOST ? asked_ring : SHARE_MOST);
}

struct dp_budget dp_budget_split(uint64_t most, unsigned threads, unsigned slots)
{
	const uint64_t rings = most / DP_ROOM_STEP;
	struct dp_budget b = {.most = most, .slots = rings < slots ? (unsigned)rings : slots};
	if (!b.slots)
		b.slots = 1;
	b.first = DP_ROOM_STEP * min(b.slots, 2 * (uint64_t)threads + SPARE_THREADS);
	/* If memory is small, half of it is reserved for rings that need more than the first step. */
	if (b.first > most / 2)
		b.first = most / 2 / DP_ROOM_STEP * DP_ROOM_STEP;
	return b;
}

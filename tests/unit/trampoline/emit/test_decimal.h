/* SPDX-License-Identifier: MIT */
/* Decimal steps, computed in another way than where they are used, and the agent's table of them. */
#ifndef DP_TESTS_DECIMAL_H
#define DP_TESTS_DECIMAL_H

#include "trampoline/trampoline.h"

#include <string.h>

/* Powers of ten and their multiples, one after the other. */
static unsigned decimal_bucket(int64_t v)
{
	unsigned bucket = 0;
	if (v < 0)
		return DP_AGG_DECIMAL_WORDS - 1;
	for (unsigned __int128 n = 1; n <= (uint64_t)v; n *= 10)
		bucket += n * 5 <= (uint64_t)v ? 3 : n * 2 <= (uint64_t)v ? 2 : 1;
	return bucket;
}

static struct dp_decimal decimal;

static void make_decimal(void)
{
	memset(decimal.bound, 0xff, sizeof(decimal.bound));
	for (uint64_t n = 1; n < UINT64_C(1) << 62; n *= 10)
		for (uint64_t k = 1; k <= 5; k += k > 1 ? 3 : 1)
			if (n * k < UINT64_C(1) << 63)
				decimal.bound[63 - __builtin_clzll(n * k)] = n * k;
	decimal.bound[63] = 0;
	for (unsigned k = 0; k < 64; k++)
		decimal.below[k] = (uint8_t)decimal_bucket((int64_t)((UINT64_C(1) << k) - 1));
}

#endif

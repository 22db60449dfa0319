/* SPDX-License-Identifier: MIT */
#include "base/text_hash.h"

#include <sys/random.h>

static uint64_t mix(uint64_t h, uint64_t v)
{
	const unsigned __int128 m = (unsigned __int128)(h ^ v) * 0x9e3779b97f4a7c15u;
	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

uint32_t dp_text_hash(const void *bytes, size_t n)
{
	static uint64_t seed;
	const uint8_t *p = bytes;
	if (!seed && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uintptr_t)&seed;
	uint64_t h = mix(seed, n + 1), v;
	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&v, p, 8);
		h = mix(h, v + seed);
	}
	return (uint32_t)mix(h, dp_text_tail(p, n) + seed);
}

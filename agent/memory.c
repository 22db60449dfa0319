/* SPDX-License-Identifier: MIT */
/*
 * gcc calls these even in freestanding code. Plain loops, no string instructions: a hit may have the direction flag set, and
 * clearing and restoring it costs more than the loop.
 */
#include "agent/agent.h"

void *memcpy(void *dst, const void *src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;
	uint64_t word;

	for (; n >= sizeof(word); n -= sizeof(word), d += sizeof(word), s += sizeof(word)) {
		__asm__ volatile("movq (%1), %0\n\tmovq %0, (%2)" : "=&r"(word) : "r"(s), "r"(d) : "memory");
	}
	while (n--)
		*d++ = *s++;
	return dst;
}

void *memmove(void *dst, const void *src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	if ((uintptr_t)d - (uintptr_t)s >= n)
		return memcpy(dst, src, n);
	while (n--)
		d[n] = s[n];
	return dst;
}

void *memset(void *dst, int byte, size_t n)
{
	uint8_t *d = dst;
	uint64_t word = UINT64_C(0x0101010101010101) * (uint8_t)byte;

	for (; n >= sizeof(word); n -= sizeof(word), d += sizeof(word))
		__asm__ volatile("movq %0, (%1)" : : "r"(word), "r"(d) : "memory");
	while (n--)
		*d++ = (uint8_t)byte;
	return dst;
}

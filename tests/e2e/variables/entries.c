/* SPDX-License-Identifier: MIT */
/*
 * Inlined copies whose entry is not their lowest address: compilers share a copy's end with the one before it, move rare blocks
 * away and enter loops at their end. Each function counts its calls.
 */
#include <stdio.h>

#define INLINE static inline __attribute__((always_inline))

static long counted[3];
static volatile long sink;

INLINE long early(const unsigned char *p, long x)
{
	sink = x;
	x += p[x & 63];
	counted[0]++;
	return x;
}

INLINE long branch(const unsigned char *p, long x)
{
	if (p[x & 63] > 100)
		x = x * 24 + 32;
	counted[1]++;
	return x;
}

INLINE long loop(const unsigned char *p, long x)
{
	counted[2]++;
	x += p[x & 63];
	for (int i = 0; i < (x & 15); i++)
		x = x * 97 + 16;
	return x;
}

__attribute__((noinline)) static long early_twice(const unsigned char *p, long x)
{
	if (x & 1)
		x ^= early(p, x);
	return x + early(p, x & 1023);
}

__attribute__((noinline)) static long branch_twice(const unsigned char *p, long x)
{
	if (x > 10)
		x ^= branch(p, x);
	return x + branch(p, x & 1023);
}

__attribute__((noinline)) static long loop_twice(const unsigned char *p, long x)
{
	if (p[x & 63] > 100)
		x ^= loop(p, x);
	return x + loop(p, x & 1023);
}

int main(void)
{
	static unsigned char bytes[64];
	long sum = 0;
	for (int i = 0; i < 64; i++)
		bytes[i] = (unsigned char)(i * 37);
	for (int r = 0; r < 50; r++)
		sum += early_twice(bytes, r) + branch_twice(bytes, r) + loop_twice(bytes, r);
	fprintf(stderr, "%ld\n", sum);
	printf("{\"early\":%ld,\"branch\":%ld,\"loop\":%ld}\n", counted[0], counted[1], counted[2]);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* A copy of a function has lost parameters, and its caller has other variables with the same names. */
#include <stdio.h>
#include <stdlib.h>

static volatile long sink;

static inline __attribute__((always_inline)) long weigh(long unused, long n, long fixed, long lost, long last)
{
	(void)unused;
	sink = n + fixed;
	sink = last;
	return n * 3;
}

__attribute__((noinline)) static long visit(long lost, long unused, long n)
{
	long sum = 0;
	for (long i = 0; i < n; i++)
		sum += weigh(i + 5, i, 7, unused + 99, lost + i);
	return sum + lost + unused;
}

int main(int argc, char **argv)
{
	printf("%ld\n", visit(1000000, 2000000, argc > 1 ? atol(argv[1]) : 3));
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Inlined functions in inlined functions, with parameters of the same names. With gcc -O2 both copies of visit() begin at one
 * instruction, and the ranges of the inner copy do not contain it.
 */
#include <stdio.h>
#include <stdlib.h>

#ifndef INLINE
#define INLINE static inline
#endif

struct item {
	int key;
	long weight;
};
static volatile long sink;

INLINE long weigh(const struct item *it, int n)
{
	long w = it->weight * n;
	sink = w;
	if (w > 100)
		sink = it->key;
	return w + it->key;
}

INLINE long twice(struct item *it, int n)
{
	return weigh(it, n * 2) + n;
}

__attribute__((noinline)) static long visit(struct item *list, int n)
{
	long sum = 0;
	for (int i = 0; i < n; i++) {
		if (list[i].key & 1)
			sum += twice(&list[i], i);
		else
			sum += weigh(&list[i], 1000);
	}
	return sum;
}

int main(int argc, char **argv)
{
	struct item list[8];
	for (int i = 0; i < 8; i++)
		list[i] = (struct item){i * 7, i * 11};
	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
		printf("%ld\n", visit(list, 8));
	return 0;
}

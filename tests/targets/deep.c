/* SPDX-License-Identifier: MIT */
/* deep [DEPTH]: recursion without frame pointers, through libc's qsort, down to leaf(); repeated until SIGTERM. */
#include "target.h"

TARGET_PROBED unsigned leaf(unsigned a)
{
	return a * 2654435761u;
}

static unsigned acc, depth;

TARGET_PROBED unsigned descend(unsigned n)
{
	if (n == 0)
		return leaf(acc);
	return descend(n - 1) ^ n;
}

TARGET_PROBED int compare(const void *a, const void *b)
{
	acc += descend(depth) & 1;
	return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

int main(int argc, char **argv)
{
	long bad = 0;

	depth = (unsigned)target_number(argc, argv, 1, 10);
	target_stop_on_term();
	target_ready();
	while (!target_stop) {
		int v[] = {5, 3, 9, 1, 7, 2, 8};
		qsort(v, 7, sizeof v[0], compare);
		for (int i = 1; i < 7; i++)
			bad += v[i - 1] > v[i];
		target_sleep_us(1000);
	}
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}

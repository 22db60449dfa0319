/* SPDX-License-Identifier: MIT */
/* sparse: works for a while below a frame with an array that is never touched. */
#include "target.h"

static volatile unsigned sum;

TARGET_PROBED void work(void)
{
	const uint64_t end = target_now_ms() + 600;
	while (target_now_ms() < end)
		for (unsigned i = 0; i < 100000; i++)
			sum += i;
}

TARGET_PROBED void middle(void *unused)
{
	volatile char room[5 * 4096];
	__asm__ volatile("" : : "r"(room), "r"(unused) : "memory");
	work();
	__asm__ volatile("" : : "r"(room) : "memory");
}

int main(void)
{
	middle(NULL);
	printf("RESULT OK\n");
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * USDT markers with arguments of every kind of operand, and one whose arguments are only computed while its semaphore is set.
 * Prints each round's values, and the semaphore.
 */
#define _SDT_HAS_SEMAPHORES 1
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>

__extension__ volatile unsigned short work_plain_semaphore __attribute__((section(".probes")));
__extension__ volatile unsigned short work_mixed_semaphore __attribute__((section(".probes")));
__extension__ volatile unsigned short work_guarded_semaphore __attribute__((section(".probes")));

struct item {
	int16_t small;
	uint8_t byte;
	int64_t wide;
};
static struct item items[4] = {{-3, 200, -5000000000}, {-4, 201, -5000000001}, {-5, 202, -5000000002}, {-6, 203, -5000000003}};
static int32_t global_word = -77;

__attribute__((noinline)) static void plain(long round, int negative)
{
	DTRACE_PROBE3(work, plain, round, negative, 42);
}

__attribute__((noinline)) static void mixed(const struct item *item, long index, const char *text)
{
	DTRACE_PROBE6(work, mixed, item[index].small, item[index].byte, item[index].wide, global_word, text, (char)index);
}

__attribute__((noinline)) static void guarded(long round)
{
	if (!work_guarded_semaphore)
		return;
	DTRACE_PROBE1(work, guarded, round * 3);
}

int main(int argc, char **argv)
{
	const long rounds = argc > 1 ? atol(argv[1]) : 1000000;
	unsigned last = ~0u;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("READY");
	for (long i = 0; i < rounds; i++) {
		const unsigned now = work_guarded_semaphore;
		if (now != last)
			printf("semaphore %u\n", last = now);
		plain(i, (int)-i);
		mixed(items, i & 3, i & 1 ? "odd" : "even");
		guarded(i);
		usleep(argc > 2 ? (unsigned)atoi(argv[2]) : 2000);
	}
	puts("RESULT OK");
	return 0;
}

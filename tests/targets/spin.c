/* SPDX-License-Identifier: MIT */
/* spin [CALLS [DELAY_US]]: calls foo(i, word) in a loop; 0 calls = until SIGTERM. With CALLS the whole output is reproducible. */
#include "target.h"

TARGET_PROBED unsigned foo(unsigned a, const char *s)
{
	while (*s)
		a = a * 31 + (unsigned char)*s++;
	return a;
}

/* A named caller, for backtraces from foo. */
TARGET_PROBED unsigned caller(unsigned a, const char *s)
{
	return foo(a, s) + 1;
}

const char *words[] = {"alpha", "beta", "gamma", ""};
const char greeting[] = "hello from the target"; /* read by string:NAME:ADDR contexts */
volatile int32_t counter = -7;

int main(int argc, char **argv)
{
	long calls = target_number(argc, argv, 1, 0), delay = target_number(argc, argv, 2, 0);
	unsigned sum = 0;
	long bad = 0, i = 0;

	target_stop_on_term();
	target_ready();
	for (; !target_stop && (calls == 0 || i < calls); i++) {
		const char *s = words[i & 3];
		unsigned r = caller((unsigned)i, s);
		bad += r != target_expected((unsigned)i, s) + 1;
		sum = sum * 33 + r;
		if (delay)
			target_sleep_us(delay);
	}
	if (calls)
		printf("calls %ld checksum %08x greeting %s\n", i, sum, greeting);
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}

/* SPDX-License-Identifier: MIT */
/* crasher HOW [DELAY_MS]: ends by itself: segv, abort, kill, term, or exit status N; foo() is called in between. */
#include "target.h"

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

static int end(const char *how)
{
	volatile int *volatile nowhere = NULL;

	if (strcmp(how, "segv") == 0)
		*nowhere = 1;
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(how, "term") == 0)
		raise(SIGTERM);
	return atoi(how);
}

int main(int argc, char **argv)
{
	uint64_t until = target_now_ms() + (uint64_t)target_number(argc, argv, 2, 0);
	unsigned a = 1;

	target_ready();
	for (int i = 0; i < 10 || target_now_ms() < until; i++) {
		a = foo(a);
		target_sleep_us(1000);
	}
	return end(argc > 1 ? argv[1] : "0");
}

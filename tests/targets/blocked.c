/* SPDX-License-Identifier: MIT */
/* blocked: every thread blocks every signal; SIGTERM is noticed by sigpending(). */
#include "target_foo.h"

int main(void)
{
	sigset_t all, pending, after;
	long bad = 0;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &after);
	sigprocmask(SIG_SETMASK, NULL, &all); /* without the signals that cannot be blocked */
	target_ready();
	for (unsigned i = 0;; i++) {
		bad += foo(i, "blocked") != target_expected(i, "blocked");
		if (i % 100 == 0)
			target_sleep_us(1000);
		sigpending(&pending);
		if (sigismember(&pending, SIGTERM))
			break;
	}
	sigprocmask(SIG_SETMASK, NULL, &after);
	bad += memcmp(&all, &after, 8) != 0;
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}

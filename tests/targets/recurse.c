/* SPDX-License-Identifier: MIT */
/* recurse [ROUNDS]: fib() by plain recursion; 0 rounds = until SIGTERM. */
#include "target.h"

TARGET_PROBED unsigned fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

int main(int argc, char **argv)
{
	long rounds = target_number(argc, argv, 1, 0), bad = 0;

	target_stop_on_term();
	target_ready();
	for (long i = 0; !target_stop && (rounds == 0 || i < rounds); i++)
		bad += fib(15) != 610;
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}

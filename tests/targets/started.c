/* SPDX-License-Identifier: MIT */
/*
 * started N [wait]: calls foo() N times, first of all, and says so: "CALLED PID N"; then ends, or calls it once more for each
 * SIGUSR1 until SIGTERM.
 */
#include "target.h"

static volatile sig_atomic_t more;

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

static void on_usr1(int sig)
{
	(void)sig;
	more++;
}

int main(int argc, char **argv)
{
	const long n = target_number(argc, argv, 1, 1);
	unsigned calls = 0;
	for (; calls < n; calls++)
		if (foo(calls) != calls * 3 + 1)
			return 1;
	if (argc > 2 && !strcmp(argv[2], "wait")) {
		sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_usr1}, NULL);
		target_stop_on_term();
		target_ready();
		while (!target_stop) {
			for (; calls < n + more; calls++)
				foo(calls);
			target_sleep_us(1000);
		}
	}
	printf("CALLED %d %u\n", (int)getpid(), calls);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * crasher HOW [CALLS]: ends by itself, by segv, abort, kill, term, or with exit status N, after ten calls of foo(). With CALLS it
 * runs until SIGUSR1, and then ends directly after so many calls without a pause.
 */
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
	long calls = target_number(argc, argv, 2, 0);
	unsigned a = 1;

	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = target_on_term, .sa_flags = SA_RESTART}, NULL);
	target_ready();
	for (int i = 0; i < 10 || (calls && !target_stop); i++) {
		a = foo(a);
		target_sleep_us(1000);
	}
	for (long i = 0; i < calls; i++)
		a = foo(a);
	return end(argc > 1 ? argv[1] : "0");
}

/* SPDX-License-Identifier: MIT */
/* How tests wait for what another thread or process does: not for a time, but until it is so. */
#ifndef DP_TESTS_UNTIL_H
#define DP_TESTS_UNTIL_H

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

/* False once that was about a minute: machines are busy. */
static inline bool until_again(int *n)
{
	nanosleep(&(struct timespec){0, 100000}, NULL);
	return ++*n < 400000;
}

/* Whether it came to hold. */
#define until(condition)                                                                                                         \
	({                                                                                                                       \
		int until_n = 0;                                                                                                 \
		bool until_is;                                                                                                   \
		while (!(until_is = (condition)) && until_again(&until_n))                                                       \
			;                                                                                                        \
		until_is;                                                                                                        \
	})

static inline void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif

/* SPDX-License-Identifier: MIT */
/* How tests wait for another thread or process: until a condition is true, not for a time. */
#ifndef DP_TESTS_UNTIL_H
#define DP_TESTS_UNTIL_H

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

/* False after about a minute: machines are busy. */
static inline bool until_again(int *n)
{
	nanosleep(&(struct timespec){0, 100000}, NULL);
	return ++*n < 400000;
}

/* Whether the condition became true. */
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

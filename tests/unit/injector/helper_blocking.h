/* SPDX-License-Identifier: MIT */
/* A table of every system call of x86-64 that a test can make block, with and without a timeout. */
#ifndef DP_TESTS_HELPER_BLOCKING_H
#define DP_TESTS_HELPER_BLOCKING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct blocking {
	const char *name;
	long nr;
	int (*make)(void);  /* in the process that will call: a descriptor or the like for `call`; -1 with errno on failure */
	long (*call)(void); /* blocks forever, or for a long time */
	bool timed;         /* by its own or its socket's timeout */
};
/* The table, in three parts. */
const struct blocking *blocking_descriptors(size_t *n);
const struct blocking *blocking_copies(size_t *n);
const struct blocking *blocking_waits(size_t *n);
/* Removes what the kernel or the file system would keep after the end of the process that made it. */
void blocking_remove(const struct blocking *b, int made, pid_t pid);

#endif

/* SPDX-License-Identifier: MIT */
/* Forks at a chosen instruction, as a signal handler of the program may. */
#ifndef DP_TEST_STEP_H
#define DP_TEST_STEP_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Calls work(), and forks after its n-th instruction: the child continues there, and returns with *child 0. It has its parent's thread
 * id word, as after a raw clone. False: work() has fewer instructions.
 */
bool step_fork(unsigned n, void (*work)(void), pid_t *child);

#endif

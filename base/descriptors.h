/* SPDX-License-Identifier: MIT */
/* This process's own file descriptors: how many it may have (RLIMIT_NOFILE). */
#ifndef DP_BASE_DESCRIPTORS_H
#define DP_BASE_DESCRIPTORS_H

#include "base/error.h"

#include <stddef.h>

/*
 * Occupies 0, 1 and 2 where they are closed, so that no message is written into a file, or into memory, that is opened later and
 * gets such a number. They stay without use (EBADF), and are closed in a program that is executed. Call it first.
 */
void dp_descriptors_occupy_standard(void);
/* Raises the limit as far as the user may. Call it before the first thread is created. */
void dp_descriptors_raise(void);
/* In a child, before exec: the limit that the user set. Async-signal-safe. */
void dp_descriptors_reset(void);
/* The limit. */
size_t dp_descriptors_most(void);
/*
 * DP_TAG_LIMIT: half of them are in use, so that none may be spent on one more process: those that are probed already need them
 * to be probed, recorded and cleaned.
 */
struct dp_error *dp_descriptors_check(void) DP_MUST_CHECK;
/* DP_TAG_LIMIT: there is not one left. What cannot be opened then is no proof that it does not exist. */
struct dp_error *dp_descriptors_check_any(void) DP_MUST_CHECK;

#endif

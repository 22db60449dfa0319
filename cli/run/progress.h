/* SPDX-License-Identifier: MIT */
/* A counter on the terminal, while many probes are looked up, planned, placed and removed. */
#ifndef DP_CLI_PROGRESS_H
#define DP_CLI_PROGRESS_H

#include "base/error.h"

#define DP_MANY_PLACES 1000u /* more of them are announced, and counted from the start */

/* Shows it from here on, if standard error is a terminal; or not any more. */
void dp_progress_on(bool on);
/* `what` is being done ("planning"); so many of so many are (of 0: it is not known how many). */
void dp_progress(const char *what, size_t done, size_t of);
/* Before anything else is written there. */
void dp_progress_clear(void);
/* The same as dp_progress(), before one more step of work that has changed nothing yet: dp_signals_check(). */
struct dp_error *dp_progress_step(const char *what, size_t done, size_t of) DP_MUST_CHECK;

#endif

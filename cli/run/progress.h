/* SPDX-License-Identifier: MIT */
/* A counter on the terminal while many probes are looked up, planned, placed and removed. */
#ifndef DP_CLI_RUN_PROGRESS_H
#define DP_CLI_RUN_PROGRESS_H

#include "session/calls.h"

/* From here on shows the counter, if standard error is a terminal; or hides it. */
void dp_progress_on(bool on);
/* `what` ("planning"): `done` of `of` (0: unknown) are done. */
void dp_progress(const char *what, size_t done, size_t of);
/* Before other output on standard error. */
void dp_progress_clear(void);
/* dp_progress() and dp_signals_check(), before a step of work that has changed nothing yet. */
struct dp_error *dp_progress_step(const char *what, size_t done, size_t of) DP_MUST_CHECK;

#endif

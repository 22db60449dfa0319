/* SPDX-License-Identifier: MIT */
/* Exit statuses of a run. */
#ifndef DP_CLI_RUN_STATUS_H
#define DP_CLI_RUN_STATUS_H

#include "cli/run/trace.h"

/* The status by dynprobe's own outcome. */
int dp_status_of(const struct dp_trace *t, const struct dp_error *err);
/* Waits for the launched command and returns its status, or `own` if it succeeded. Dies of the signal that it died of. */
int dp_status_wait(struct dp_trace *t, int own);

#endif

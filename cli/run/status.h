/* SPDX-License-Identifier: MIT */
/* Exit statuses of a run. */
#ifndef DP_CLI_STATUS_H
#define DP_CLI_STATUS_H

#include "cli/run/trace.h"

/* The status that dynprobe's own outcome asks for. */
int dp_status_of(const struct dp_trace *t, const struct dp_error *err);
/* Waits for the launched command and passes its status on; dies of the signal that it died of. `own` counts if the command
 * succeeded. */
int dp_status_wait(struct dp_trace *t, int own);

#endif

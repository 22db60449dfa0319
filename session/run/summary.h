/* SPDX-License-Identifier: MIT */
/* What came of a run, in numbers. */
#ifndef DP_SESSION_RUN_SUMMARY_H
#define DP_SESSION_RUN_SUMMARY_H

#include "output/output.h"
#include "session/run/run.h"

/* All but the recording and the snapshots. ret->probe is the caller's to free. False without memory. */
bool dp_run_summary(const struct dp_run *run, struct dp_summary *ret);

#endif

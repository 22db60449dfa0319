/* SPDX-License-Identifier: MIT */
/* Places that a pattern names and that cannot be probed: a note, where they are few; else refusals like all others. */
#ifndef DP_SESSION_RUN_PATTERNS_H
#define DP_SESSION_RUN_PATTERNS_H

#include "session/run/run.h"

/* Of the places that a pattern has in a process, so many may be refused: that number, or one in that many. */
#define DP_PATTERN_HANDFUL 10u

/* Sets place[i].left_out of every refused place that is a note only. When all refusals are known. */
void dp_patterns_judge(struct dp_run *run);

#endif

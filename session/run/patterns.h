/* SPDX-License-Identifier: MIT */
/* Sites of a pattern that cannot be probed: they are only counted if they are few; otherwise they are refusals. */
#ifndef DP_SESSION_RUN_PATTERNS_H
#define DP_SESSION_RUN_PATTERNS_H

#include "session/run/run.h"

/* Few: at most this number of a pattern's sites in a process, or at most one in this number. */
#define DP_PATTERN_HANDFUL 10u

/* Sets place[i].left_out of refused sites that are only counted. Call it when all refusals are known. */
void dp_patterns_judge(struct dp_run *run);

#endif

/* SPDX-License-Identifier: MIT */
/* What has been found out about code, kept from one look to the next. */
#ifndef DP_TRAMPOLINE_KNOWN_H
#define DP_TRAMPOLINE_KNOWN_H

#include "trampoline/arch/x86_64/decode/branch_targets.h"
#include "trampoline/code/sweep.h"

/* As dp_sweeps_get(). */
const struct dp_sweep *dp_analysis_sweep(struct dp_analysis *known, const struct dp_text *text, const struct dp_range *function);
/* The landings of the module whose segments the text has, found when they are asked for first. NULL when out of memory. */
const struct dp_branch_targets *dp_analysis_branch_targets(struct dp_analysis *known, const struct dp_text *text);

#endif

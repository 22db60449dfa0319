/* SPDX-License-Identifier: MIT */
/* A cache of analysis results about code. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_DECODE_ANALYSIS_H
#define DP_TRAMPOLINE_ARCH_X86_64_DECODE_ANALYSIS_H

#include "trampoline/arch/x86_64/decode/branch_targets.h"
#include "trampoline/arch/x86_64/decode/sweep.h"

/* Like dp_sweeps_get(). */
const struct dp_sweep *dp_analysis_sweep(struct dp_analysis *known, const struct dp_text *text, const struct dp_range *function);
/* The branch targets of the text's module, found at the first call. NULL when out of memory. */
const struct dp_branch_targets *dp_analysis_branch_targets(struct dp_analysis *known, const struct dp_text *text);

#endif

/* SPDX-License-Identifier: MIT */
/* What has been found out about code, kept from one look to the next. */
#ifndef DP_TRAMPOLINE_KNOWN_H
#define DP_TRAMPOLINE_KNOWN_H

#include "trampoline/arch/x86_64/decode/landings.h"
#include "trampoline/code/sweep.h"

/* As dp_sweeps_get(). */
const struct dp_sweep *dp_known_sweep(struct dp_known *known, const struct dp_text *text, const struct dp_range *function);
/* The landings of the module whose segments the text has, found when they are asked for first. NULL when out of memory. */
const struct dp_landings *dp_known_landings(struct dp_known *known, const struct dp_text *text);

#endif

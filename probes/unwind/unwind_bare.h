/* SPDX-License-Identifier: MIT */
/* Rows for functions that symbols name and no unwind table describes: hand-written code, as a rule. */
#ifndef DP_PROBES_UNWIND_BARE_H
#define DP_PROBES_UNWIND_BARE_H

#include "probes/image/module.h"
#include "probes/unwind/unwind_rows.h"

/* Adds those of [start, end), the file's addresses, to `rows`, which has what the tables say. False when out of memory. */
bool dp_unwind_bare(struct dp_module *m, uint64_t start, uint64_t end, dp_unwind_follow follow, struct dp_unwind_rows *rows);

#endif

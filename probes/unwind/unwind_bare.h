/* SPDX-License-Identifier: MIT */
/* Rows for functions that have a symbol but no unwind table, usually hand-written assembly. */
#ifndef DP_PROBES_UNWIND_UNWIND_BARE_H
#define DP_PROBES_UNWIND_UNWIND_BARE_H

#include "probes/image/module.h"
#include "probes/unwind/unwind_compile.h"
#include "probes/unwind/unwind_rows.h"

/* Adds the functions in [start, end) (file addresses) to `rows`, which has the rows of the tables. False when out of memory. */
bool dp_unwind_bare(struct dp_module *m, uint64_t start, uint64_t end, dp_unwind_follow follow, struct dp_unwind_rows *rows);

#endif

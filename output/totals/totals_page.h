/* SPDX-License-Identifier: MIT */
/*
 * The page of a run that wrote no events but rows: an aggregation, a tree of calls or a profile. It has the lines themselves, and
 * the script makes tables, histograms and a flame graph of them.
 */
#ifndef DP_OUTPUT_TOTALS_TOTALS_PAGE_H
#define DP_OUTPUT_TOTALS_TOTALS_PAGE_H

#include "base/error.h"

#include <stdio.h>

/* Are there rows before any event? Leaves the stream at its begin. */
bool dp_totals_page_is(FILE *from);
/* DP_TAG_BAD_TRACE: `from` is no output of dynprobe -f json. */
struct dp_error *dp_totals_page(FILE *from, const char *name, FILE *to) DP_MUST_CHECK;

#endif

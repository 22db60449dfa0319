/* SPDX-License-Identifier: MIT */
/* A snapshot as one page for a browser: data, style and program in one file, nothing fetched from anywhere. */
#ifndef DP_OUTPUT_REPORT_H
#define DP_OUTPUT_REPORT_H

#include "pmodules/model/snapshot.h"

#include <stdio.h>

struct dp_error *dp_report_html(struct dp_snapshot *s, FILE *to) DP_MUST_CHECK;

#endif

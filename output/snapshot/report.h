/* SPDX-License-Identifier: MIT */
/* A snapshot as one HTML page: data, style and script in one file, without external resources. */
#ifndef DP_OUTPUT_SNAPSHOT_REPORT_H
#define DP_OUTPUT_SNAPSHOT_REPORT_H

#include "pmodules/pmodules.h"

#include <stdio.h>

struct dp_error *dp_report_html(struct dp_snapshot *s, FILE *to) DP_MUST_CHECK;

#endif

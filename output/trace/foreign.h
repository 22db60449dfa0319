/* SPDX-License-Identifier: MIT */
/*
 * Any CTF trace (LTTng's, or ours without its description) through libbabeltrace2, which is loaded when it is needed. Events
 * become those of our own kind: numbers, strings, and texts of whatever has no place in struct dp_fields.
 */
#ifndef DP_OUTPUT_TRACE_FOREIGN_H
#define DP_OUTPUT_TRACE_FOREIGN_H

#include "output/trace/source.h"

/* DP_TAG_BAD_TRACE if libbabeltrace2 cannot read it; DP_TAG_NO_BABELTRACE if there is no libbabeltrace2. */
struct dp_error *dp_foreign_open(const char *dir, struct dp_trace_source **ret) DP_MUST_CHECK;

#endif

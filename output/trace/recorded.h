/* SPDX-License-Identifier: MIT */
/* A trace of our own recorder: its streams, merged by time. */
#ifndef DP_OUTPUT_TRACE_RECORDED_H
#define DP_OUTPUT_TRACE_RECORDED_H

#include "output/trace/source.h"

/* Is it a directory with a trace that has our description of its events? */
bool dp_recorded_is(const char *dir);
/* DP_TAG_BAD_TRACE if nothing of it can be read. */
struct dp_error *dp_recorded_open(const char *dir, struct dp_trace_source **ret) DP_MUST_CHECK;

#endif

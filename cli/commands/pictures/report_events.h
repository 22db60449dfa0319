/* SPDX-License-Identifier: MIT */
/* The page of recorded events: of a trace, or of a run that wrote NDJSON. */
#ifndef DP_CLI_COMMANDS_PICTURES_REPORT_EVENTS_H
#define DP_CLI_COMMANDS_PICTURES_REPORT_EVENTS_H

#include "cli/options/options.h"

enum dp_report_kind { DP_REPORT_SNAPSHOT, DP_REPORT_TRACE, DP_REPORT_RUN };
/* A directory is a trace, a file that begins with { a run's output, any other a snapshot. */
enum dp_report_kind dp_report_kind(const char *name);
struct dp_error *dp_report_events(const struct dp_options *o, enum dp_report_kind kind, FILE *to) DP_MUST_CHECK;

#endif

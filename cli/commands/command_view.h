/* SPDX-License-Identifier: MIT */
/* Between the verb view (command_view.c) and its comparison of two periods (command_view_against.c). */
#ifndef DP_CLI_COMMANDS_COMMAND_VIEW_H
#define DP_CLI_COMMANDS_COMMAND_VIEW_H

#include "cli/options/options.h"
#include "session/view/view.h"

/* What was asked of the traces, without an aggregation; borrows the options. */
struct dp_view_asked dp_view_asked_of(const struct dp_options *o);
/* Adds a trace by its path, or by its name in the default directory. */
struct dp_error *dp_view_add_named(struct dp_trace_view *view, const char *name) DP_MUST_CHECK;
/* Adds the traces that were named, or the one that was recorded last. */
struct dp_error *dp_view_add_traces(struct dp_trace_view *view, const struct dp_options *o) DP_MUST_CHECK;
/* Says on standard error what was not read or not counted; true if a trace is damaged. */
bool dp_view_report(const struct dp_trace_view *view);

/* --against: writes the comparison to `to`. */
struct dp_error *dp_view_against(const struct dp_options *o, struct dp_source_lines *sources, FILE *to,
                                 bool *damaged) DP_MUST_CHECK;

#endif

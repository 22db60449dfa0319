/* SPDX-License-Identifier: MIT */
/* A run as a command: the engine's run (session/run/run.h) with its outputs, signals, reports and exit status. */
#ifndef DP_CLI_RUN_TRACE_H
#define DP_CLI_RUN_TRACE_H

#include "cli/options/options.h"
#include "cli/run/outputs.h"
#include "cli/tree/calls_shown.h"
#include "output/aggregations/compared.h"
#include "session/run/run.h"

struct dp_trace {
	struct dp_run run;
	struct dp_trace_spec spec; /* that of `options`, with `calls` */
	struct dp_trace_calls calls;
	const struct dp_options *options;
	struct dp_outputs out;
	struct dp_calls_shown *tree; /* calls_shown.h; NULL: events */
	struct dp_compared_kept earlier; /* --changes: the last interval */
	int signal_fd;
	int signal; /* the one that ended it, or 0 */
	bool cut;   /* the recording ended early, because its disk is full */
};

/* Runs what the options ask for; the exit status. Errors are printed. */
int dp_trace(const struct dp_options *options);
/*
 * The same for one attached probe, which replaces the resident probe `name` in the same transaction. *blocked: the old probe
 * leaves no room for a second jump; then changes and prints nothing.
 */
int dp_trace_superseding(const struct dp_options *options, const char *name, bool *blocked);
/* Since the probes are there, to their removal. */
double dp_trace_seconds(const struct dp_trace *t);
/* trace_calls.c: what the engine reports and asks. */
void dp_trace_calls_init(struct dp_trace *t);
/* Once the outputs are open: whether they take batches. */
void dp_trace_calls_batches(struct dp_trace *t);

/* report.c */
void dp_report_plan(const struct dp_trace *t, FILE *to); /* --dry-run and -v */
/* Flushes standard output. A reader that closed the pipe is no error. */
struct dp_error *dp_report_flushed(void) DP_MUST_CHECK;
void dp_report_refusals(const struct dp_trace *t); /* a line for each refused probe, at once */
void dp_report_summary(struct dp_trace *t);
void dp_report_snapshots(const struct dp_trace *t);

#endif

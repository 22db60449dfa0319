/* SPDX-License-Identifier: MIT */
/* A whole run: targets, outputs, the loop, the end. */
#ifndef DP_CLI_TRACE_H
#define DP_CLI_TRACE_H

#include "cli/session/expand/expand.h"
#include "cli/run/outputs.h"
#include "cli/session/session.h"

struct dp_run {
	const struct dp_options *options;
	struct dp_expansion expanded; /* `options` are those in here where patterns were given */
	struct dp_session **session;
	size_t nsessions;
	struct dp_outputs out;
	int signal_fd;
	uint64_t start_ns, recorded;
	uint64_t armed_ns, leave_ns, clear_ns; /* all probes stand and it runs; they begin to go; they are out */
	size_t current;       /* session being drained */
	const char *ended_by; /* NULL while it runs */
	int signal;           /* the one that ended it, or 0 */
	bool leaving;         /* the probes are being taken out, or are */
	bool hurried;         /* one more signal came meanwhile: what is recorded and not shown yet is counted only */
	bool flooded;         /* the last round found much: come back soon */
	/* Sink lttng (lttng_run.c). */
	bool use_lttng, lttng_covered; /* covered: the session's own rules want our events */
	bool lttng_by_rule; /* a rule is added to the user's current session */
	bool unheard; /* a session does not take the events of a process, and why is known */
	char why_ring[256];            /* why it is not LTTng that has the events */
	bool kept;                     /* some probes were left, with their session */
	bool failed;
	struct dp_lttng *lttng;
	struct dp_answers_run *answers; /* answers_show.c */
	struct dp_snapshots *snapshots; /* snapshots.h */
	char *lttng_session; /* the user's current one */
	const char *supersedes; /* name of the standing probe whose place the only probe of this run takes, or NULL (keep.c) */
};

/* Runs what the options ask for; the exit status. Errors are printed. */
int dp_trace(const struct dp_options *options);
/*
 * The same for one attached probe, which takes the place of the standing probe `name` in the same moment. *blocked: that one leaves no
 * room for another jump there; nothing is changed then, nor said.
 */
int dp_trace_superseding(const struct dp_options *options, const char *name, bool *blocked);

/* loop.c: drains and watches until something ends the run. Errors are those of the outputs. */
struct dp_error *dp_run_loop(struct dp_run *run) DP_MUST_CHECK;
/* Did a signal ask for the end by now? Does not wait. */
bool dp_run_interrupted(struct dp_run *run);
/* Is the run to end, whatever is still to be shown? While it leaves: does a further signal say so? Does not wait. */
bool dp_run_must_leave(void *run);
/* One round over all sessions; `last` takes everything. */
void dp_run_drain(struct dp_run *run, bool last);
/* -n: are all wanted hits recorded? */
bool dp_run_has_all(const struct dp_run *run);
/* Takes over what the targets have lost by now. */
void dp_run_note_losses(struct dp_run *run);
/* Hits lost, all causes, all probes, as last noted. */
uint64_t dp_run_lost(const struct dp_run *run);

/* report.c */
void dp_report_plan(const struct dp_run *run, FILE *to); /* --dry-run and -v */
/* Could all of it be written to standard output? A reader that has enough is no failure. */
struct dp_error *dp_report_flushed(void) DP_MUST_CHECK;
void dp_report_refusals(const struct dp_run *run);       /* a line for each refused probe, at once */
void dp_report_summary(struct dp_run *run);

#endif

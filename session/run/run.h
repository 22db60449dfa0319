/* SPDX-License-Identifier: MIT */
/*
 * A whole run: one session for each process, from the first look to the last event. The caller goes through the steps in this
 * order: open, resolve, then dry_run; or choose (lttng_run.h), install, release, loop, remove, drain_rest; or, for probes that stay, keep.
 */
#ifndef DP_SESSION_RUN_H
#define DP_SESSION_RUN_H

#include "session/expand/expand.h"
#include "session/process/session.h"

struct dp_run {
	const struct dp_trace_spec *trace; /* as asked; after dp_run_resolve() that of `expanded` where patterns were given */
	struct dp_expansion expanded;
	struct dp_session **session;
	size_t nsessions;
	uint64_t start_ns, recorded;
	uint64_t armed_ns, leave_ns, clear_ns; /* all probes are placed; their removal begins; they are removed */
	size_t current;       /* session being drained */
	const char *ended_by; /* NULL while it runs */
	bool leaving;         /* the probes are being removed, or are */
	bool hurried;         /* one more signal came meanwhile: what is recorded and not shown yet is counted only */
	bool flooded;         /* the last round found much: come back soon */
	/* Sink lttng (lttng_run.c). */
	bool use_lttng, lttng_covered; /* covered: the session's own rules want our events */
	bool lttng_by_rule;            /* a rule is added to the user's current session */
	bool unheard;                  /* a session does not take the events of a process, and why is known */
	char why_ring[256];            /* why the events do not go to LTTng */
	bool kept;                     /* some probes were left, with their session */
	bool failed;
	struct dp_lttng *lttng;
	struct dp_snapshots *snapshots; /* snapshots.h */
	struct dp_rows *rows;           /* rows.h */
	char *lttng_session;            /* the user's current one */
	const char *supersedes; /* name of the resident probe that the only probe of this run replaces, or NULL (keep.c) */
};

/* run.c. `trace` and its calls are the caller's, until dp_run_fini(). */
void dp_run_init(struct dp_run *run, const struct dp_trace_spec *trace);
void dp_run_fini(struct dp_run *run);
/* Starts the command and stops it before its first instruction. */
struct dp_error *dp_run_launch(struct dp_run *run) DP_MUST_CHECK;
/* Opens the processes; nothing in them is changed. */
struct dp_error *dp_run_attach(struct dp_run *run) DP_MUST_CHECK;
/* Expands patterns by what the first process has, and finds the place of every probe in each. */
struct dp_error *dp_run_resolve(struct dp_run *run) DP_MUST_CHECK;
/* Plans, and changes nothing. */
struct dp_error *dp_run_dry_run(struct dp_run *run) DP_MUST_CHECK;
/* Places the probes. *placed: in so many processes some are placed, or pending. A signal between two of them ends it without an error. */
struct dp_error *dp_run_install(struct dp_run *run, size_t *placed) DP_MUST_CHECK;
/* The command that was launched begins to run. */
struct dp_error *dp_run_release(struct dp_run *run) DP_MUST_CHECK;
/* Removes the probes. From here on a signal only means that the remaining events are not wanted any more. */
struct dp_error *dp_run_remove(struct dp_run *run) DP_MUST_CHECK;
/* Behind it: reads the rings for the last time. */
void dp_run_drain_rest(struct dp_run *run);
/* Probes placed, in all processes. */
size_t dp_run_placed(const struct dp_run *run);

/* loop.c: drains and watches until something ends the run. Errors are those of the caller's `flush`. */
struct dp_error *dp_run_loop(struct dp_run *run) DP_MUST_CHECK;
/* Did a signal ask for the end by now? Does not wait. */
bool dp_run_interrupted(struct dp_run *run);
/* Is the run to end, whatever is still to be shown? While it leaves: does a further signal say so? Does not wait. */
bool dp_run_must_leave(void *run);
/* One round over all sessions; `last` takes everything. */
void dp_run_drain(struct dp_run *run, bool last);
/* Are all wanted hits recorded? */
bool dp_run_has_all(const struct dp_run *run);
/* Takes over what the targets have lost by now. */
void dp_run_note_losses(struct dp_run *run);
/* Hits lost, all causes, all probes, as last noted. */
uint64_t dp_run_lost(const struct dp_run *run);
/* A line that goes between the events. */
void dp_run_note(const struct dp_run *run, const char *text);

#endif

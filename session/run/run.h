/* SPDX-License-Identifier: MIT */
/*
 * A whole run, with one session for each process. The caller takes these steps, in this order: launch or attach; resolve; then
 * dry_run; or choose (lttng_run.h), install, release, loop, remove, drain_rest. For resident probes, keep replaces loop and the
 * steps after it.
 */
#ifndef DP_SESSION_RUN_RUN_H
#define DP_SESSION_RUN_RUN_H

#include "session/thread_names.h"
#include "session/expand/expand.h"
#include "session/process/session.h"

struct dp_run_missing { /* one of several processes that cannot be probed; the others are */
	pid_t pid;
	struct dp_error *why;
};

struct dp_run {
	const struct dp_trace_spec *trace; /* the caller's; after dp_run_resolve() that of `expanded`, if there were patterns */
	struct dp_expansion expanded;
	struct dp_session **session;
	size_t nsessions;
	struct dp_starts *starts; /* starts.h; NULL: processes that start are not probed */
	struct dp_past *past;     /* past.h */
	bool resolved;            /* dp_run_install() has begun: a process that comes is armed at once */
	struct dp_run_missing *missing;
	size_t nmissing;
	uint64_t start_ns, recorded;
	uint64_t entered;                      /* of them: entries, which are a part of their return's event or line */
	uint64_t armed_ns, leave_ns, clear_ns; /* all probes are installed; their removal begins; they are removed */
	size_t current;                        /* the session being drained */
	bool looked_for_gaps;                  /* since its draining began */
	struct dp_full_counts full;            /* of processes that have gone */
	const char *ended_by;                  /* NULL while the run goes on */
	bool leaving;                          /* the removal of the probes has begun */
	bool hurried;                          /* another signal came then: the remaining events are only counted */
	bool enough;                           /* the caller wants no more events */
	bool flooded;                          /* the last round had many events: sleep for a short time only */
	bool drowned;                          /* it had so many that rings may be full soon: take a nap only */
	/* Sink lttng (lttng_run.c). */
	bool use_lttng, lttng_covered; /* covered: the session's own rules include our events */
	bool lttng_by_rule;            /* we add a rule to the user's current session */
	bool unheard;                  /* a session does not record the events of a process, for a known reason */
	bool unanswered;               /* so it was with the process that started last */
	char why_ring[256];            /* why the events do not go to LTTng; empty: the user chose so */
	bool kept;                     /* some probes were left, and the session with them */
	bool failed;
	struct dp_lttng *lttng;
	struct dp_snapshots *snapshots; /* snapshots.h */
	struct dp_rows *rows;           /* rows.h */
	struct dp_thread_names threads;
	struct dp_decoder *decoder;     /* of each probe's hits; .fields is NULL before the first (loop.c) */
	char *lttng_session;            /* the user's current one */
	const char *supersedes; /* name of the resident probe that the only probe of this run replaces, or NULL (keep.c) */
};

/* run.c. The caller owns `trace` and its calls; they must outlive the run. */
void dp_run_init(struct dp_run *run, const struct dp_trace_spec *trace);
void dp_run_fini(struct dp_run *run);
/* Starts the command and stops it before its first instruction. */
struct dp_error *dp_run_launch(struct dp_run *run) DP_MUST_CHECK;
/*
 * Opens the processes; nothing in them is changed. Here and in each step before dp_run_install(), one of several that fails goes
 * to `missing`; if none is left, the error is the first one of the step that lost the last process. One that fails in
 * dp_run_install() has its probes refused.
 */
struct dp_error *dp_run_attach(struct dp_run *run) DP_MUST_CHECK;
/* With programs to watch: waits for the first process, if there is none yet. DP_TAG_INTERRUPTED; DP_TAG_NO_PROCESS: time is up.
 */
struct dp_error *dp_run_await(struct dp_run *run) DP_MUST_CHECK;
/* Expands patterns by the functions of the first process that has some for each, and finds every probe's site in each process. */
struct dp_error *dp_run_resolve(struct dp_run *run) DP_MUST_CHECK;
/* Plans only. */
struct dp_error *dp_run_dry_run(struct dp_run *run) DP_MUST_CHECK;
/* Installs the probes. *placed: the number of processes with installed or pending probes. A signal between two processes ends
 * it without an error. */
struct dp_error *dp_run_install(struct dp_run *run, size_t *placed) DP_MUST_CHECK;
/* Lets the launched command run. */
struct dp_error *dp_run_release(struct dp_run *run) DP_MUST_CHECK;
/* Removes the probes. From now on a signal only means that the user does not want the remaining events. */
struct dp_error *dp_run_remove(struct dp_run *run) DP_MUST_CHECK;
/* After that: reads the rings for the last time. */
void dp_run_drain_rest(struct dp_run *run);
/* The number of installed probes in all processes. */
size_t dp_run_placed(const struct dp_run *run);

/* loop.c: drains and watches until something ends the run. Its errors are those of the caller's `flush`. */
struct dp_error *dp_run_loop(struct dp_run *run) DP_MUST_CHECK;
/* Whether a signal has ended the run. Does not wait. */
bool dp_run_interrupted(struct dp_run *run);
/* Whether the run must end without showing the rest: by a signal or its duration; during removal, by another signal. Does not
 * wait. */
bool dp_run_must_leave(void *run);
/* One round over all sessions; `last`: also incomplete records. */
void dp_run_drain(struct dp_run *run, bool last);
/* Sleeps until the next round, a signal, or a process that waits to be probed. */
void dp_run_rest(struct dp_run *run);
/* Whether the limit of -n, or one of the caller's, is reached. */
bool dp_run_has_all(const struct dp_run *run);
/* Reads the targets' loss counters. */
void dp_run_note_losses(struct dp_run *run);
void dp_run_note_losses_of(const struct dp_run *run, struct dp_session *s);
/* The sum of lost hits, as last read. */
uint64_t dp_run_lost(const struct dp_run *run);
/* The fields of a probe are known now. `run` is a struct dp_run. */
void dp_run_fields_known(unsigned probe, void *run);
/* Passes the caller a line that goes between the events. */
void dp_run_note(const struct dp_run *run, const char *text);

#endif

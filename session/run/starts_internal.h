/* SPDX-License-Identifier: MIT */
/* Shared by starts.c and starts_all.c. */
#ifndef DP_SESSION_RUN_STARTS_INTERNAL_H
#define DP_SESSION_RUN_STARTS_INTERNAL_H

#include "injector/tracee/exec/exec_catch.h"
#include "session/run/starts.h"

struct dp_starts {
	struct dp_exec_watch *watch;
	char **path; /* of the watched programs */
	size_t npaths;
	const char **name; /* --follow-exec */
	size_t nnames;
	struct dp_exec_tree *tree; /* --follow */
	size_t noriginals;         /* --follow: the first sessions are the run's own, and stay */
	struct dp_everywhere *all; /* --all */
	size_t nfiles;             /* of `all`, that are watched */
	struct dp_error *nowhere;  /* a process has the module of a probe, but not the place; none has it */
	struct dp_summary_programs count;
	unsigned notes;
};

/* Has the program none of the places? */
bool dp_starts_is_other(const struct dp_session *s);
/* Arms a process, or, before the run's probes are resolved, adds it to those that will be. Takes `s`. */
struct dp_error *dp_starts_admit(struct dp_run *run, struct dp_session *s, bool late) DP_MUST_CHECK;
/* A line about a process, for the first ones. `why` may be NULL. */
void dp_starts_note(struct dp_run *run, pid_t pid, const char *what, const struct dp_error *why);
/* Counts and names a process that gets no probes. Takes `why`. */
void dp_starts_refuse(struct dp_run *run, pid_t pid, struct dp_error *why);

/* ---- starts_all.c ---------------------------------------------------------------------------------------------------------- */

struct dp_error *dp_starts_all_begin(struct dp_run *run, struct dp_error *(*each)(struct dp_run *run, pid_t pid)) DP_MUST_CHECK;
/* Looks for processes that were not held when they mapped a module, if it is time to. */
void dp_starts_all_round(struct dp_run *run);
/* Is there nothing more to do for the process now? */
bool dp_starts_all_settles(struct dp_run *run, struct dp_exec_caught *caught, struct dp_error **err);
/* Does nobody miss the process's probes? Then takes the error. */
bool dp_starts_all_excuses(const struct dp_run *run, struct dp_error *err);

#endif

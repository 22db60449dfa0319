/* SPDX-License-Identifier: MIT */
/*
 * --program: the processes that execute a program, those of now and those to come. One to come is held in its exec, gets the
 * run's probes, and goes on; its counts stay after it has ended. What is wrong with one of them never ends the run. --follow: the
 * same for all programs that the processes of the run, and their fork children, execute. --all: all processes that map a module,
 * also those to come.
 */
#ifndef DP_SESSION_RUN_STARTS_H
#define DP_SESSION_RUN_STARTS_H

#include "session/run/run.h"

struct dp_starts; /* opaque */
/* Watches the programs or modules, then calls `each` for every process that has one already. Nothing without --program and --all.
 */
struct dp_error *dp_starts_begin(struct dp_run *run, struct dp_error *(*each)(struct dp_run *run, pid_t pid)) DP_MUST_CHECK;
/*
 * --follow: watches the processes of the sessions, and what they fork; the programs that these execute are probed where they have
 * the run's places. Where the user may not watch, nothing is watched, which is logged.
 */
struct dp_error *dp_starts_follow(struct dp_run *run) DP_MUST_CHECK;
/* After all processes have their probes: programs that they execute from now on are held until they have theirs. */
void dp_starts_hold(const struct dp_run *run);
/*
 * --follow: session `s` has not what patterns and returns stand for, because of `why`, which this takes. Expands them by the
 * files of --follow-exec.
 */
struct dp_error *dp_starts_expand(struct dp_run *run, const struct dp_session *s, struct dp_error *why) DP_MUST_CHECK;
/*
 * --all: a process that has no place for any of the probes is not one of the run. dp_starts_lacks(): is this error about that?
 * Then takes it. dp_starts_drop(): after resolving, closes these processes, or all. dp_starts_nowhere(): if none is left, whether
 * a module without the place was seen: then the probe's name is wrong.
 */
bool dp_starts_lacks(struct dp_run *run, struct dp_error *err);
struct dp_error *dp_starts_drop(struct dp_run *run, bool all) DP_MUST_CHECK;
struct dp_error *dp_starts_nowhere(struct dp_run *run) DP_MUST_CHECK;
/* After resolving. */
void dp_starts_log_absent(const struct dp_run *run);
/* May more processes come? */
bool dp_starts_lives(const struct dp_run *run);
/* Takes all that wait, and arms them. */
void dp_starts_round(struct dp_run *run);
/* Keeps the counts of those that have ended, and forgets them. Call it after their rings were read. */
void dp_starts_reap(struct dp_run *run);
/* Readable when a process waits; -1 without programs. */
int dp_starts_fd(const struct dp_run *run);
/* From now on processes start without probes. */
void dp_starts_leave(struct dp_run *run);
/* The counters; false without programs. */
bool dp_starts_counts(const struct dp_run *run, struct dp_summary_programs *ret);
void dp_starts_fini(struct dp_run *run);

#endif

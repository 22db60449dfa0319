/* SPDX-License-Identifier: MIT */
#ifndef DP_CLI_RUN_SIGNALS_H
#define DP_CLI_RUN_SIGNALS_H

#include "base/error.h"

#include <sys/types.h>

/*
 * From here on SIGINT, SIGTERM and SIGHUP are pending in a descriptor, so that one in the middle of a transaction ends the run
 * after it. SIGPIPE is ignored.
 */
struct dp_error *dp_signals_open(int *ret) DP_MUST_CHECK;
/* Between two steps of long work that has changed nothing yet: DP_TAG_INTERRUPTED if one is pending. It stays pending. */
struct dp_error *dp_signals_check(void) DP_MUST_CHECK;
/* Is one of them pending? */
bool dp_signals_wait(void);
/* Did one come before all probes were placed? Then prints once that the placed ones are removed, and keeps the signal. */
bool dp_signals_placing(void);
/* The one that dp_signals_placing() keeps, or 0. */
int dp_signals_kept(void);
/* Takes a pending one: its number, or 0. */
int dp_signals_take(void);
/* From here on probes are in place and a signal ends the run in order: dp_signals_check() finds nothing any more. */
void dp_signals_settled(void);

/*
 * From here on standard error tells when the kernel is about to kill dynprobe for holding threads too long, and when threads are
 * held without a timer for that (watchdog.h).
 */
void dp_signals_tell_of_kill(void);

/* ---- signals_watch.c ---------------------------------------------------------------------------------------------------------
 */

/*
 * A single step may take long (debug information, a server that does not answer) without a check. So until dp_signals_unwatch() a
 * thread watches: if dynprobe has not reached its next dp_signals_check() half a second after a signal, the thread ends dynprobe,
 * as the check would have. Only while no process has been changed. Kills `command` (or 0), which dynprobe still holds.
 */
struct dp_error *dp_signals_watch(int signal_fd, pid_t command) DP_MUST_CHECK;
void dp_signals_unwatch(void);
/* Between these two the thread does not end dynprobe: threads are stopped. */
void dp_signals_hold(void);
void dp_signals_unhold(void);
/* dp_signals_check() was reached. */
void dp_signals_beat(void);

#define DP_SIGNALS_PLANNING "a signal came while the probes were planned: none was placed"

#endif

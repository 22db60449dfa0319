/* SPDX-License-Identifier: MIT */
#ifndef DP_CLI_SIGNALS_H
#define DP_CLI_SIGNALS_H

#include "base/error.h"

#include <sys/types.h>

/*
 * SIGINT, SIGTERM and SIGHUP wait in a descriptor from here on, so that one that comes in the middle of a transaction ends the
 * run after it; SIGPIPE is ignored.
 */
struct dp_error *dp_signals_open(int *ret) DP_MUST_CHECK;
/* Between two steps of long work that has changed nothing yet: DP_TAG_INTERRUPTED if one of them waits. It stays where it is. */
struct dp_error *dp_signals_check(void) DP_MUST_CHECK;
/* Does one of them wait? */
bool dp_signals_wait(void);
/* Has one come before all probes stand? Then those that do are to go again, which is said, once; and it is kept. */
bool dp_signals_placing(void);
/* The one that dp_signals_placing() keeps, or 0. */
int dp_signals_kept(void);
/* Takes one that waits: its number, or 0. */
int dp_signals_take(void);
/* From here on probes stand, and a signal ends their run in order: dp_signals_check() finds nothing any more. */
void dp_signals_settled(void);

/* ---- signals_watch.c ---------------------------------------------------------------------------------------------------------
 */

/*
 * A single step may take long (debug information, a server that does not answer), and finds no signal meanwhile. So until
 * dp_signals_unwatch() a thread looks after them: when dynprobe has not come to its next dp_signals_check() half a second behind
 * a signal, the thread ends it as that would have. For as long as no process has been changed; `command` (or 0) is held by us,
 * and is killed then.
 */
struct dp_error *dp_signals_watch(int signal_fd, pid_t command) DP_MUST_CHECK;
void dp_signals_unwatch(void);
/* Not to be ended so between these two: threads are held. */
void dp_signals_hold(void);
void dp_signals_unhold(void);
/* A dp_signals_check() was passed. */
void dp_signals_beat(void);

#define DP_SIGNALS_PLANNING "a signal came while the probes were planned: none was left"

#endif

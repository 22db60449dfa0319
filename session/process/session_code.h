/* SPDX-License-Identifier: MIT */
/* Code that a process maps while its probes are there: libraries that it loads have unwind tables and names in backtraces, too. */
#ifndef DP_SESSION_PROCESS_SESSION_CODE_H
#define DP_SESSION_PROCESS_SESSION_CODE_H

#include "session/process/session.h"

/*
 * Part of a run's loop, for a session whose trace unwinds: looks now and then, and without stopping the process, whether there is
 * new code. `note` gets a line for people, once, if no more can be taken.
 */
void dp_session_code_round(struct dp_session *s, void (*note)(const char *text, void *data), void *data);

#endif

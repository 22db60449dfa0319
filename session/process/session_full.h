/* SPDX-License-Identifier: MIT */
/* Rings that are full: hits that wait for room, or rings that keep the newest events (decision 0049). */
#ifndef DP_SESSION_PROCESS_SESSION_FULL_H
#define DP_SESSION_PROCESS_SESSION_FULL_H

#include "session/process/session.h"

/* After each drain: says once if neither is possible any more. */
void dp_session_full_round(struct dp_session *s);
/* Sleeps for `ms` at most, until a hit waits; returns how long to sleep then. */
int dp_session_full_rest(struct dp_session *const *session, size_t n, int ms);
/*
 * Restores the text, so that no hit begins any more, and those that wait get room by the next drain. Only if hits wait: else
 * dp_session_remove() does all.
 */
void dp_session_full_leave(struct dp_session *s);
/* Adds this process's counts to `sum`. */
void dp_session_full_count(const struct dp_session *s, struct dp_full_counts *sum);

#endif

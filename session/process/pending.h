/* SPDX-License-Identifier: MIT */
/*
 * --pending: probes in libraries that are not loaded yet. A hook in the dynamic loader holds the thread that loads a library, for
 * a bounded time, until dynprobe has inspected the process. Probes that can be placed now are installed by a second session on
 * the same process (a "later" session), before the library's constructors run. Probes of an unloaded library wait again.
 */
#ifndef DP_SESSION_PROCESS_PENDING_H
#define DP_SESSION_PROCESS_PENDING_H

#include "session/process/session.h"

/* After resolving, which sets place[i].pending. Logs the pending probes. DP_TAG_PENDING if this target cannot be watched. */
struct dp_error *dp_pending_begin(struct dp_session *s) DP_MUST_CHECK;
/* Accepts NULL. */
struct dp_pending *dp_pending_destroy(struct dp_pending *p);

/* The hook, planned and installed with the probes of `s`. dp_pending_result(): false if `plan` is not the hook's. */
struct dp_error *dp_pending_plan(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view) DP_MUST_CHECK;
bool dp_pending_result(struct dp_session *s, const struct dp_plan *plan, struct dp_error *refused);
/* After installation: threads that load a library wait from now on. Fails if the hook was refused. */
struct dp_error *dp_pending_armed(struct dp_session *s) DP_MUST_CHECK;

/* ---- while it runs ---------------------------------------------------------------------------------------------------- */

/* A line for the user. */
typedef void (*dp_pending_note_fn)(const char *text, void *data);
/* The probe's fields are known now: they depend on variables of a library that was loaded. */
typedef void (*dp_pending_known_fn)(unsigned probe, void *data);
/* Drains one of the process's targets. */
typedef void (*dp_pending_drain_fn)(struct dp_target *t, bool last, void *data);
struct dp_pending_calls {
	dp_pending_drain_fn drain;
	dp_pending_note_fn note;
	dp_pending_known_fn known;
	void *data;
};
/*
 * pending_places.c: finds sites in `image` for probes that still have none (`waits`). If `sure`, a probe whose library is there
 * but that cannot be placed is refused for good (`refused`). Not `sure`: the image may have been read in the middle of a load.
 */
void dp_pending_places(const struct dp_trace_spec *trace, struct dp_image *image, bool sure);
/* Sleeps until a target loads a library, for `ms` at most. Returns how long the caller should still sleep. */
int dp_pending_rest(struct dp_session *const *session, size_t n, int ms);
/* After a load or unload: installs probes, retires those that are gone, and releases the loading thread. */
void dp_pending_round(struct dp_session *s, const struct dp_pending_calls *calls);
/* The kth session installed since; NULL: there are not so many. */
struct dp_session *dp_pending_later(const struct dp_session *s, size_t k);
/*
 * Plan `plan` of `s` is not ours any more: true if its library was unloaded, so that its probe waits again. The process is read
 * once for all of them, until dp_pending_round(), which must follow.
 */
bool dp_pending_lost(struct dp_session *s, size_t plan);
/* The target that is being drained now; a hit's addresses belong to its image. */
struct dp_target *dp_pending_draining(const struct dp_session *s);
void dp_pending_drain(struct dp_session *s, bool last, dp_pending_drain_fn drain, void *data);
/* Adds the losses of later sessions to `sum`. */
void dp_pending_loss(const struct dp_session *s, unsigned probe, struct dp_loss *sum);
/* Adds the counts of later sessions (session_full.h). */
void dp_pending_full(const struct dp_session *s, struct dp_full_counts *sum);
/* --follow, at the end: fork children do not record any more. Returns how many of them had a probe of a later session. */
unsigned dp_pending_unfollow(struct dp_session *s);
/* Releases all threads and removes the later sessions' probes; they can still be drained. Refuses probes that never came. */
struct dp_error *dp_pending_remove(struct dp_session *s) DP_MUST_CHECK;

#endif

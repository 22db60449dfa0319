/* SPDX-License-Identifier: MIT */
/*
 * --pending: probes on libraries that are not there yet. A hook in the dynamic loader holds the thread that loads one, for a
 * bounded time, until this tool has looked; what can be placed now is installed beside what stands, as a session of its own on
 * the same process, before the library's constructors run. What is unloaded is given up, and waits anew.
 */
#ifndef DP_SESSION_PENDING_H
#define DP_SESSION_PENDING_H

#include "session/process/session.h"

/* After resolving: what waits is in place[i].pending. Says so; DP_TAG_PENDING if this target cannot be waited for. */
struct dp_error *dp_pending_begin(struct dp_session *s) DP_MUST_CHECK;
/* Accepts NULL. */
struct dp_pending *dp_pending_destroy(struct dp_pending *p);

/* Around the installation of `s` itself: the hook. dp_pending_result() is false if that plan is another one's. */
struct dp_error *dp_pending_plan(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view) DP_MUST_CHECK;
bool dp_pending_result(struct dp_session *s, const struct dp_plan *plan, struct dp_error *refused);
/* It stands: loading threads wait from now on. Fails if the hook was refused. */
struct dp_error *dp_pending_armed(struct dp_session *s) DP_MUST_CHECK;

/* ---- while it runs ---------------------------------------------------------------------------------------------------- */

/* A line for the user. */
typedef void (*dp_pending_note_fn)(const char *text, void *data);
/* The probe's fields are known from now on: they are made of variables of a library that has come. */
typedef void (*dp_pending_known_fn)(unsigned probe, void *data);
struct dp_pending_calls {
	dp_hit_fn hit;
	dp_pending_note_fn note;
	dp_pending_known_fn known;
	void *data;
};
/*
 * Places for probes that wait for them (`waits`), by an image in which something new was loaded. What that image has and cannot
 * be probed is refused from then on (`refused`); not so unless `sure`: the image may have been taken amid a load. pending_places.c
 */
void dp_pending_places(const struct dp_trace_spec *trace, struct dp_image *image, bool sure);
/* Sleeps until a target loads something, for `ms` at most; how much of that is left to be slept by other means. */
int dp_pending_rest(struct dp_session *const *session, size_t n, int ms);
/* If something was loaded or unloaded: places, gives up, lets the loading thread go on. */
void dp_pending_round(struct dp_session *s, const struct dp_pending_calls *calls);
/* Plan `plan` of `s` is not ours any more: does its probe wait for its library again? */
bool dp_pending_lost(struct dp_session *s, size_t plan);
/* What is being drained: the session that a hit comes from, for its image. */
struct dp_target *dp_pending_draining(const struct dp_session *s);
void dp_pending_drain(struct dp_session *s, bool last, dp_hit_fn each, void *data);
/* Adds what was lost in later installations. */
void dp_pending_loss(const struct dp_session *s, unsigned probe, struct dp_loss *sum);
/* Lets every thread go and takes the later installations out; they can still be drained. Notes what never came. */
struct dp_error *dp_pending_remove(struct dp_session *s) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The LTTng sink as the tool sees it; shared by sink*.c, and for recover.c. The contract with the target is agent/lttng/sink.h,
 * the public face injector/injector.h.
 */
#ifndef DP_INJECTOR_SINK_H
#define DP_INJECTOR_SINK_H

#include "agent/lttng/sink.h"
#include "injector/lttng/safe/safe.h"
#include "injector/target/target.h"
#include "injector/tracee/borrow/call.h"

/* Is this mapping (of t->image) part of a sink? Then it is no leftover, but stays for ever. */
bool dp_sink_is(const struct dp_target *t, const struct dp_map *m);

/* ---- one operation's view of the target ---------------------------------------------------------------------------------- */

struct dp_sink_view {
	struct dp_target *t;
	struct dp_process process;
	char *maps;
	struct dp_image *image; /* as of now: the target's own may be from before the sink */
	struct dp_safe *safe;
	uint64_t data; /* struct dp_sink, 0 if there is none */
	struct dp_sink head;
	struct dp_call_site site;
	uint64_t pause_ns;
};
#define dp_auto_view __attribute__((cleanup(dp_sink_view_fini)))
void dp_sink_view_fini(struct dp_sink_view *v);
/* Reads the maps and finds the sink, if there is one. */
struct dp_error *dp_sink_view_open(struct dp_target *t, struct dp_sink_view *ret) DP_MUST_CHECK;
/* The same for a target whose sink is ready. */
struct dp_error *dp_sink_view_ready(struct dp_target *t, struct dp_sink_view *ret) DP_MUST_CHECK;
/* Reads the head anew. */
struct dp_error *dp_sink_head(struct dp_sink_view *v) DP_MUST_CHECK;
/* The address of an exported symbol of the target's libc (or of the executable, for variables that it took over). */
struct dp_error *dp_sink_symbol(struct dp_sink_view *v, const char *name, uint64_t *ret) DP_MUST_CHECK;
struct dp_error *dp_sink_refuse_stopped(const struct dp_sink_view *v) DP_MUST_CHECK;

/* ---- sink_map.c --------------------------------------------------------------------------------------------------------------
 */

/* Maps and fills a new sink; v->data and v->head are set. */
struct dp_error *dp_sink_map(struct dp_sink_view *v) DP_MUST_CHECK;
/* Takes it out again; nothing in the process uses it. v->data is 0 then. */
struct dp_error *dp_sink_unmap(struct dp_sink_view *v) DP_MUST_CHECK;

/* ---- sink_call.c -------------------------------------------------------------------------------------------------------------
 */

/* Runs `fn` on the best thread that stands safe before `deadline`. */
struct dp_error *dp_sink_call_any(struct dp_sink_view *v, uint64_t fn, const uint64_t args[4], uint64_t deadline,
                                  uint64_t *result) DP_MUST_CHECK;
/* Runs `fn` on this thread if it stands safe now. *outcome otherwise. */
struct dp_error *dp_sink_call_one(struct dp_sink_view *v, pid_t tid, uint64_t fn, enum dp_safe_outcome *outcome,
                                  char why[128]) DP_MUST_CHECK;
/* Prepares v->safe, and makes sure that no earlier call is under way. */
struct dp_error *dp_sink_call_begin(struct dp_sink_view *v) DP_MUST_CHECK;

#endif

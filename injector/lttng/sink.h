/* SPDX-License-Identifier: MIT */
/*
 * The LTTng sink as the tool sees it: for sink*.c and recover.c. agent/sink.h is the contract with the target,
 * injector/injector.h the public interface.
 */
#ifndef DP_INJECTOR_LTTNG_SINK_H
#define DP_INJECTOR_LTTNG_SINK_H

#include "agent/sink.h"
#include "injector/lttng/safe/safe.h"
#include "injector/target/target.h"
#include "injector/tracee/borrow/call.h"

/* Is this mapping (of t->image) part of a sink? A sink stays forever, so it is no leftover. */
bool dp_sink_is(const struct dp_target *t, const struct dp_map *m);

/* ---- state of one operation on the target's sink ------------------------------------------------------------------------- */

struct dp_sink_view {
	struct dp_target *t;
	struct dp_process process;
	char *maps;
	struct dp_image *image; /* current; the target's own may predate the sink */
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
/* The same, but the sink must be ready. */
struct dp_error *dp_sink_view_ready(struct dp_target *t, struct dp_sink_view *ret) DP_MUST_CHECK;
/* Reads the head again. */
struct dp_error *dp_sink_head(struct dp_sink_view *v) DP_MUST_CHECK;
/* Address of a symbol that the target's libc exports (or of the executable's copy, for a variable). */
struct dp_error *dp_sink_symbol(struct dp_sink_view *v, const char *name, uint64_t *ret) DP_MUST_CHECK;
struct dp_error *dp_sink_refuse_stopped(const struct dp_sink_view *v) DP_MUST_CHECK;

/* ---- sink_map.c ------------------------------------------------------------------------------------------------------------ */

/* Maps and fills a new sink; sets v->data and v->head. */
struct dp_error *dp_sink_map(struct dp_sink_view *v) DP_MUST_CHECK;
/* Unmaps a sink that nothing in the process uses, and sets v->data to 0. */
struct dp_error *dp_sink_unmap(struct dp_sink_view *v) DP_MUST_CHECK;

/* ---- sink_call.c ----------------------------------------------------------------------------------------------------------- */

/* Runs `fn` on the best thread that reaches a safe point before `deadline`. */
struct dp_error *dp_sink_call_any(struct dp_sink_view *v, uint64_t fn, const uint64_t args[4], uint64_t deadline,
                                  uint64_t *result) DP_MUST_CHECK;
/* Runs `fn` on this thread if it is at a safe point now; else *outcome and `why` say what prevents it. */
struct dp_error *dp_sink_call_one(struct dp_sink_view *v, pid_t tid, uint64_t fn, enum dp_safe_outcome *outcome,
                                  char why[128]) DP_MUST_CHECK;
/* Prepares v->safe, and makes sure that no earlier call is still running. */
struct dp_error *dp_sink_call_begin(struct dp_sink_view *v) DP_MUST_CHECK;

#endif

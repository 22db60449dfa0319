/* SPDX-License-Identifier: MIT */
/*
 * Runs pmodules on a snapshot: stores the callbacks of those that load/load.h loads, and calls these in order
 * (docs/pmodules.md, "Life of a module"). A module cannot break the snapshot: its errors are logged and counted (attribute
 * pmodule.ID.errors). Its time and memory are limited (classifier pmodule-timeout).
 */
#ifndef DP_PMODULES_HOST_HOST_H
#define DP_PMODULES_HOST_HOST_H

#include "pmodules/model/snapshot.h"
#include "pmodules/value/value.h"

enum dp_log_level { DP_LOG_DEBUG, DP_LOG_INFO, DP_LOG_WARNING, DP_LOG_ERROR, DP_LOG_PRINT /* a module's output: to stdout */ };
struct dp_host_options {
	const char *const *lua_allow; /* io, os, package, debug, load; NULL-terminated, or NULL */
	uint64_t budget_ns; /* of a module while the process is held; 0: the default, 50 ms. Ten times that after the release */
	uint64_t memory;    /* of a Lua module, bytes; 0: 64 MiB */
	bool pmap, pmap_cached;
	void (*log)(enum dp_log_level level, const char *module, const char *text,
	            void *data); /* NULL: to stderr from warnings on */
	void *data;
	struct dp_limits limits; /* limits of what modules show */
	bool nobody_waits;       /* no process is held (modules run on a saved file): all budgets are those after the release */
	struct dp_value *(*value_of)(struct dp_debug_ctx *w,
	                             struct dp_snap_variable *v); /* for variables without a value; or NULL */
};
struct dp_host; /* opaque */
struct dp_error *dp_host_create(const struct dp_host_options *options, struct dp_host **ret) DP_MUST_CHECK;
struct dp_host *dp_host_destroy(struct dp_host *h); /* calls unload */
/* `--module=ID:k,v,...`; call before loading. DP_TAG_USAGE. */
struct dp_error *dp_host_option(struct dp_host *h, const char *text) DP_MUST_CHECK;
size_t dp_host_nmodules(const struct dp_host *h);
const char *dp_host_module_id(const struct dp_host *h, size_t i);
const char *dp_host_module_path(const struct dp_host *h, size_t i);
/* How many callbacks the module registered for that event; for `pmodule list`. */
enum dp_module_event {
	DP_EVENT_PREATTACH,
	DP_EVENT_ATTACH,
	DP_EVENT_VARIABLE,
	DP_EVENT_FRAME,
	DP_EVENT_THREAD,
	DP_EVENT_POSTATTACH,
	DP_EVENTS
};
size_t dp_host_callbacks(const struct dp_host *h, size_t module, enum dp_module_event event);
/* Must any module run while the process is held (attach, variable, frame, thread)? */
bool dp_host_wants_held(const struct dp_host *h);

/*
 * One snapshot: begin, preattach, attach, thread ..., postattach, end. The world may be NULL until attach. From the second
 * snapshot on, begin calls the modules' reset.
 */
void dp_host_begin(struct dp_host *h, struct dp_snapshot *s);
void dp_host_set_debug_ctx(struct dp_host *h, struct dp_debug_ctx *w); /* from attach on; NULL again before it is destroyed */
/* The source of the snapshot, for what reads past its saved memory; NULL again before it is closed. */
struct dp_stopped;
void dp_host_set_stopped(struct dp_host *h, struct dp_stopped *s);
void dp_host_preattach(struct dp_host *h);
void dp_host_attach(struct dp_host *h);
/* Calls variable, frame, then thread callbacks: bottom-up. Synthesized children that callbacks add are not visited. */
void dp_host_thread(struct dp_host *h, struct dp_snap_thread *t);
/* Variable events of globals and thread-locals. */
void dp_host_globals(struct dp_host *h);
void dp_host_postattach(struct dp_host *h);
void dp_host_end(struct dp_host *h); /* invalidates the objects that modules hold */

#endif

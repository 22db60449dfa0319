/* SPDX-License-Identifier: MIT */
/*
 * Runs pmodules on a snapshot: loads them (.so by dlopen, .lua by lua.h), keeps what they registered, calls them in order
 * (docs/pmodules.md, "Life of a module"). A module can never break the snapshot: its errors are logged and counted (attribute
 * pmodule.ID.errors), after 16 it is switched off; it has a budget of time and memory (classifier pmodule-timeout).
 */
#ifndef DP_PMODULES_HOST_H
#define DP_PMODULES_HOST_H

#include "pmodules/model/snapshot.h"
#include "pmodules/value/value.h"

enum dp_log_level { DP_LOG_DEBUG, DP_LOG_INFO, DP_LOG_WARNING, DP_LOG_ERROR, DP_LOG_PRINT /* what a module prints: for standard output */ };
struct dp_host_options {
	const char *const *lua_allow; /* io, os, package, debug, load; NULL-terminated, or NULL */
	uint64_t budget_ns; /* of a module while the process is held; 0: the default, 50 ms. Afterwards ten times that */
	uint64_t memory;    /* of a Lua module, bytes; 0: 64 MiB */
	bool pmap, pmap_cached;
	void (*log)(enum dp_log_level level, const char *module, const char *text,
	            void *data); /* NULL: to stderr from warnings on */
	void *data;
	struct dp_limits limits; /* of what modules show */
	bool nobody_waits;       /* no process is held meanwhile (a file is run again): all budgets are those of afterwards */
	struct dp_value *(*value_of)(struct dp_world *w, struct dp_snap_variable *v); /* where variables have no value of their own; or NULL */
};
struct dp_host; /* opaque */
struct dp_error *dp_host_create(const struct dp_host_options *options, struct dp_host **ret) DP_MUST_CHECK;
struct dp_host *dp_host_destroy(struct dp_host *h); /* calls unload */
/* Before loading: `--module=ID:k,v,...`; DP_TAG_USAGE. */
struct dp_error *dp_host_option(struct dp_host *h, const char *text) DP_MUST_CHECK;
/* .lua or .so; calls define and load. DP_TAG_PMODULE says which line, which error. */
struct dp_error *dp_host_load(struct dp_host *h, const char *path) DP_MUST_CHECK;
/* Every *.lua and *.so of a directory, by name; one that fails is logged and the others go on. */
struct dp_error *dp_host_load_dir(struct dp_host *h, const char *path) DP_MUST_CHECK;
/* The same of those that are installed with dynprobe. */
struct dp_error *dp_host_load_own(struct dp_host *h) DP_MUST_CHECK;
size_t dp_host_nmodules(const struct dp_host *h);
const char *dp_host_module_id(const struct dp_host *h, size_t i);
const char *dp_host_module_path(const struct dp_host *h, size_t i);
/* How many callbacks of that event it has registered; for `pmodule list`. */
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
/* Does any module want to run while the process is held (attach, variable, frame, thread)? */
bool dp_host_wants_held(const struct dp_host *h);

/* One snapshot: begin, then preattach, attach, thread ... , postattach, end. `w` may be NULL until attach. Before it, if it is not the first one,
 * modules are told to forget the last one: reset. */
void dp_host_begin(struct dp_host *h, struct dp_snapshot *s);
void dp_host_set_world(struct dp_host *h, struct dp_world *w); /* from attach on; NULL again before it is destroyed */
void dp_host_preattach(struct dp_host *h);
void dp_host_attach(struct dp_host *h);
/* Variables, then frames, then the thread: bottom-up. Synthesized children that callbacks add are not visited again. */
void dp_host_thread(struct dp_host *h, struct dp_snap_thread *t);
/* Globals and thread-locals: variable events. */
void dp_host_globals(struct dp_host *h);
void dp_host_postattach(struct dp_host *h);
void dp_host_end(struct dp_host *h); /* objects that modules hold are stale from here on */

#endif

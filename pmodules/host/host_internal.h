/* SPDX-License-Identifier: MIT */
/*
 * What the host, the functions of pmodule.h and the languages (C: host_c.c, Lua: lua.h) know of each other.
 *
 * A language is a table of functions. dp_host_load() makes a `struct pmodule`, lets the language open it (which says its id),
 * calls load under the language's protection, and keeps what load registers by dp_host_register(). Everything that is the same
 * for all languages is the host's: match objects are copied, callbacks run in the order of their registration, errors are logged
 * with the module's id and counted (those of one callback once), a module that uses up its time is not called any more in this
 * snapshot.
 *
 * The objects that pmodule.h hands out are the model's structs under other names: no wrappers, nothing to free.
 */
#ifndef DP_PMODULES_HOST_INTERNAL_H
#define DP_PMODULES_HOST_INTERNAL_H

#include "pmodules/host/host.h"
#include "pmodules/pmodule.h"

#include <stdarg.h>

#define DP_BUDGET_HELD_NS  UINT64_C(50000000)
#define DP_BUDGET_TOTAL_NS UINT64_C(200000000) /* of all modules together, while the process is held */
#define DP_BUDGET_LATE     10u                 /* times the budget, when the process runs again, and for load, reset, unload */
#define DP_MODULE_MEMORY   (UINT64_C(64) << 20)
#define DP_MODULE_OBJECTS  200000u /* that modules make in one snapshot */
#define DP_DISPATCH_DEPTH  16u

/* ---- languages ------------------------------------------------------------------------------------------------------------ */

struct dp_callback {
	struct pmodule *module;
	enum dp_module_event event;
	struct pmodule_match *match; /* the host's own copy, or NULL: everything */
	/* The language's: what it gave to dp_host_register(). */
	void (*fn)(void);
	intptr_t ref;
	unsigned errors; /* in this snapshot */
};

struct dp_language {
	/*
	 * Runs the module's load(), which registers callbacks. An error refuses the module: `unload` is not called, `close` is.
	 */
	struct dp_error *(*load)(struct pmodule *m);
	void (*reset)(struct pmodule *m); /* NULL-safe: the module need not have one. Errors by dp_module_error() */
	void (*unload)(struct pmodule *m);
	/*
	 * Runs one callback. `object` is the ptrace_backtrace_t, _thread_t, _frame_t or _variable_t of cb->event; `value`
	 * (variables only) may be NULL. An error is logged and counted by the host (its message with the traceback). A language
	 * must come back soon after dp_module_expired() says so (Lua: an instruction hook that asks); it returns an error then,
	 * too, and the host knows why.
	 */
	struct dp_error *(*call)(struct pmodule *m, const struct dp_callback *cb, void *object, struct dp_value *value);
	void (*close)(struct pmodule *m); /* frees m->state */
};

struct pmodule {
	struct pmodule *prev, *next; /* utlist, in load order */
	struct dp_host *host;
	const char *path;
	char *id; /* set by the language's open with dp_module_set_id() */
	const struct dp_language *language;
	void *state;      /* the language's */
	bool is_loading;  /* registering is allowed */
	bool is_deferred; /* define{phase = "postattach"}: its variable, frame and thread events come after the release */
	bool is_off;      /* for this snapshot: too many errors, or out of time */
	bool is_broken;   /* for good: it crashed */
	bool is_timed_out;
	unsigned errors; /* in this snapshot */
	unsigned callbacks[DP_EVENTS];
	uint64_t held_ns, late_ns; /* used in this snapshot */
	uint64_t deadline_ns;      /* CLOCK_MONOTONIC, of the call that runs; 0: none runs */
};

/*
 * How a language is entered: given m->host and m->path, sets language and state and calls dp_module_set_id(). DP_TAG_PMODULE. On
 * an error nothing is left behind. dp_lua_open() is in lua.h.
 */
struct dp_error *dp_c_open(struct pmodule *m) DP_MUST_CHECK;

/* Copies; DP_TAG_PMODULE if it is empty, too long, has other characters than letters, digits, "_-.", or another module has it. */
struct dp_error *dp_module_set_id(struct pmodule *m, const char *id) DP_MUST_CHECK;
/*
 * Only while m->is_loading (else DP_TAG_PMODULE). `match` is copied; NULL: everything. It is refused with events that take none,
 * and criteria of variables with frame and thread events.
 */
struct dp_error *dp_host_register(struct pmodule *m, const struct pmodule_match *match,
                                  const struct dp_callback *callback) DP_MUST_CHECK;
/* Takes over the error: logged with the module's id, and counted. */
void dp_module_error(struct pmodule *m, struct dp_error *err);
/* Has the call that runs used up its time? Cheap enough for an instruction hook (30 ns). */
bool dp_module_expired(const struct pmodule *m);
/* Of --module=ID:key,value; NULL. */
const char *dp_module_option(const struct pmodule *m, const char *key);
uint64_t dp_module_memory(const struct pmodule *m);            /* bytes that a Lua module may have */
const char *const *dp_host_lua_allow(const struct dp_host *h); /* NULL-terminated, or NULL */
/* `m` NULL: "dynprobe". */
void dp_host_log(struct dp_host *h, enum dp_log_level level, const struct pmodule *m, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* Changes when a snapshot begins and when it ends; 0 outside of one. An object that a language made in another generation is
 * stale. */
uint64_t dp_host_generation(const struct dp_host *h);

/* ---- match objects ------------------------------------------------------------------------------------------------------------
 */

struct pmodule_match *dp_match_copy(const struct pmodule_match *m); /* NULL without memory */
/* Criteria that only variables have? (Refused with frame and thread events and iterators.) */
bool dp_match_of_variables(const struct pmodule_match *m);
bool dp_match_thread(const struct pmodule_match *m, const struct dp_snap_thread *t);
bool dp_match_frame(const struct pmodule_match *m, const struct dp_snap_frame *f);
bool dp_match_variable(const struct pmodule_match *m, const struct dp_snap_variable *v);

/* ---- the running call
 * ------------------------------------------------------------------------------------------------------------ */

enum dp_phase { DP_PHASE_NONE, DP_PHASE_PREATTACH, DP_PHASE_HELD, DP_PHASE_LATE };

/* Of the module that is being called on this thread; NULL outside of calls. Functions of pmodule.h find their snapshot here. */
struct dp_host *dp_host_current(void);
struct pmodule *dp_module_current(void);
struct dp_snapshot *dp_host_snapshot(const struct dp_host *h); /* NULL outside of dp_host_begin .. end */
struct dp_world *dp_host_world(const struct dp_host *h);       /* or NULL */
enum dp_phase dp_host_phase(const struct dp_host *h);

/* ---- the objects' names
 * ----------------------------------------------------------------------------------------------------------- */

#define DP_CONVERTERS(what, outside, inside)                                                                                     \
	static inline outside *dp_out_##what(inside *p)                                                                          \
	{                                                                                                                        \
		return (outside *)(void *)p;                                                                                     \
	}                                                                                                                        \
	static inline inside *dp_in_##what(const outside *p)                                                                     \
	{                                                                                                                        \
		return (inside *)(uintptr_t)p;                                                                                   \
	}
DP_CONVERTERS(backtrace, ptrace_backtrace_t, struct dp_snapshot)
DP_CONVERTERS(thread, ptrace_thread_t, struct dp_snap_thread)
DP_CONVERTERS(frame, ptrace_frame_t, struct dp_snap_frame)
DP_CONVERTERS(variable, ptrace_variable_t, struct dp_snap_variable)
DP_CONVERTERS(siginfo, ptrace_siginfo_t, struct dp_snap_siginfo)
DP_CONVERTERS(pmap, ptrace_pmap_entry_t, struct dp_snap_map)
DP_CONVERTERS(value, bt_variable_t, struct dp_value)
#undef DP_CONVERTERS

#endif

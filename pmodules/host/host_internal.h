/* SPDX-License-Identifier: MIT */
/*
 * The interface between the host, the functions of pmodule.h and the languages (C: host_c.c, Lua: lua.h).
 *
 * A language is a table of functions. dp_host_load() makes a `struct pmodule`, has the language open it (which sets its id),
 * calls load under the language's protection, and stores what load registers with dp_host_register(). The host does what all
 * languages share: it copies match objects, runs callbacks in order of registration, logs errors with the module's id, counts
 * them (one per callback is logged), and stops calling a module that used up its time in this snapshot.
 *
 * The objects that pmodule.h hands out are the model's structs under other names: no wrappers, nothing to free.
 */
#ifndef DP_PMODULES_HOST_HOST_INTERNAL_H
#define DP_PMODULES_HOST_HOST_INTERNAL_H

#include "pmodules/host/host.h"
#include "pmodules/pmodule.h"

#include <stdarg.h>

#define DP_BUDGET_HELD_NS  UINT64_C(50000000)
#define DP_BUDGET_TOTAL_NS UINT64_C(200000000) /* of all modules together, while the process is held */
#define DP_BUDGET_LATE     10u                 /* factor of the budget after the release, and for load, reset, unload */
#define DP_MODULE_MEMORY   (UINT64_C(64) << 20)
#define DP_MODULE_OBJECTS  200000u /* that modules may make in one snapshot */
#define DP_DISPATCH_DEPTH  16u

/* ---- languages ------------------------------------------------------------------------------------------------------------ */

struct dp_callback {
	struct pmodule *module;
	enum dp_module_event event;
	struct pmodule_match *match; /* the host's own copy, or NULL: everything */
	/* The language's own: what it passed to dp_host_register(). */
	void (*fn)(void);
	intptr_t ref;
	unsigned errors; /* in this snapshot */
};

struct dp_language {
	/*
	 * Runs the module's load(), which registers callbacks. On an error the module is refused: `close` is called, `unload` is
	 * not.
	 */
	struct dp_error *(*load)(struct pmodule *m);
	void (*reset)(struct pmodule *m); /* the module need not have one. Reports errors with dp_module_error() */
	void (*unload)(struct pmodule *m);
	/*
	 * Runs one callback. `object` is the ptrace_backtrace_t, _thread_t, _frame_t or _variable_t of cb->event; `value`
	 * (variables only) may be NULL. The host logs and counts an error; its message includes the traceback. A language must
	 * return soon after dp_module_expired() becomes true (Lua: an instruction hook asks); it then returns an error too, and
	 * the host knows why.
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
	bool is_loading;  /* callbacks may be registered */
	bool is_deferred; /* define{phase = "postattach"}: its variable, frame and thread events run after the release */
	bool is_off;      /* for this snapshot: out of time */
	bool is_broken;   /* it crashed: never call it again */
	bool is_timed_out;
	unsigned errors; /* in this snapshot */
	unsigned callbacks[DP_EVENTS];
	uint64_t held_ns, late_ns; /* used in this snapshot */
	uint64_t deadline_ns;      /* CLOCK_MONOTONIC, of the running call; 0: none */
};

/*
 * Opens a module in C: given m->host and m->path, sets language and state and calls dp_module_set_id(). DP_TAG_PMODULE. On an
 * error it cleans up. dp_lua_open() is in lua.h.
 */
struct dp_error *dp_c_open(struct pmodule *m) DP_MUST_CHECK;

/* Copies the id. DP_TAG_PMODULE if it is empty, too long or taken, or has characters other than letters, digits and "_-.". */
struct dp_error *dp_module_set_id(struct pmodule *m, const char *id) DP_MUST_CHECK;
/*
 * Only while m->is_loading (else DP_TAG_PMODULE). `match` is copied; NULL: everything. Refused: a match for events that take
 * none, and criteria of variables for frame and thread events.
 */
struct dp_error *dp_host_register(struct pmodule *m, const struct pmodule_match *match,
                                  const struct dp_callback *callback) DP_MUST_CHECK;
/* Logs the error with the module's id, counts it and frees it. */
void dp_module_error(struct pmodule *m, struct dp_error *err);
/* Did the running call use up its time? Cheap enough for an instruction hook (30 ns). */
bool dp_module_expired(const struct pmodule *m);
/* The value from --module=ID:key,value, or NULL. */
const char *dp_module_option(const struct pmodule *m, const char *key);
uint64_t dp_module_memory(const struct pmodule *m);            /* memory limit of a Lua module, bytes */
const char *const *dp_host_lua_allow(const struct dp_host *h); /* NULL-terminated, or NULL */
/* `m` NULL: logs as "dynprobe". */
void dp_host_log(struct dp_host *h, enum dp_log_level level, const struct pmodule *m, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* Changes when a snapshot begins; 0 outside of one. Objects that a language made in another generation are stale. */
uint64_t dp_host_generation(const struct dp_host *h);

/* ---- match objects ------------------------------------------------------------------------------------------------------ */

struct pmodule_match *dp_match_copy(const struct pmodule_match *m); /* NULL: out of memory */
/* Has it criteria that only variables have? Frame and thread events and iterators refuse those. */
bool dp_match_of_variables(const struct pmodule_match *m);
bool dp_match_thread(const struct pmodule_match *m, const struct dp_snap_thread *t);
bool dp_match_frame(const struct pmodule_match *m, const struct dp_snap_frame *f);
bool dp_match_variable(const struct pmodule_match *m, const struct dp_snap_variable *v);

/* ---- the running call --------------------------------------------------------------------------------------------------- */

enum dp_phase { DP_PHASE_NONE, DP_PHASE_PREATTACH, DP_PHASE_HELD, DP_PHASE_LATE };

/* The module being called on this thread; NULL outside calls. Functions of pmodule.h find their snapshot by it. */
struct dp_host *dp_host_current(void);
struct pmodule *dp_module_current(void);
struct dp_snapshot *dp_host_snapshot(const struct dp_host *h);   /* NULL outside dp_host_begin .. end */
struct dp_debug_ctx *dp_host_debug_ctx(const struct dp_host *h); /* or NULL */
enum dp_phase dp_host_phase(const struct dp_host *h);

/* ---- conversion of the objects' types ----------------------------------------------------------------------------------- */

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

/* SPDX-License-Identifier: MIT */
/* The host's own state, for host*.c and api*.c only. */
#ifndef DP_PMODULES_HOST_HOST_STATE_H
#define DP_PMODULES_HOST_HOST_STATE_H

#include "pmodules/host/guard.h"
#include "pmodules/host/host_internal.h"

#include <uthash.h>
#include <utlist.h>

struct dp_module_option { /* --module=ID:key,value */
	struct dp_module_option *prev, *next;
	char *id, *key, *value;
	bool is_checked; /* a module with that id was found */
};

struct dp_callbacks {
	struct dp_callback *at;
	size_t n, cap;
};

/* Objects that modules made but did not add yet. Only these may be added, and only once. */
struct dp_loose {
	const void *object;
	UT_hash_handle hh;
};

struct dp_host {
	struct dp_host_options options;
	struct pmodule *modules;
	size_t nmodules;
	struct dp_callbacks callbacks[DP_EVENTS]; /* in order of registration */
	struct dp_module_option *module_options;
	struct dp_snapshot *snapshot; /* NULL outside of begin .. end */
	struct dp_debug_ctx *world;
	struct dp_stopped *stopped; /* or NULL: modules run on a file */
	enum dp_phase phase;
	uint64_t generation, generations;
	uint64_t held_ns; /* of all modules in this snapshot */
	uint64_t last_ns; /* when the last callback of this walk returned; 0: none did. Saves reading the clock */
	unsigned entered; /* nesting of running callbacks */
	unsigned dispatching;
	struct dp_loose *loose;
	uint64_t made; /* objects and bytes that modules added in this snapshot */
	uint64_t made_bytes;
	struct dp_arena scratch; /* strings borrowed until the outermost callback returns */
	enum pmodule_read_source source; /* of the last read by address; values are read by the world */
	uint64_t reads;                  /* the world's read count at that time */
	char error[512]; /* bt_error() */
};

/* host_run.c: makes `m` the running module, with a deadline, and ends that. */
struct dp_entry {
	struct pmodule *before;
	uint64_t begin, deadline;
};
struct dp_entry dp_module_enter(struct pmodule *m);
uint64_t dp_module_leave(struct pmodule *m, const struct dp_entry *entry); /* returns the time used */
uint64_t dp_host_now(void);
uint64_t dp_host_budget(const struct dp_host *h); /* of one module while the process is held */
bool dp_host_is_held(const struct dp_host *h);    /* does the process wait for the running callback? */
/* Runs the variable callbacks of the deferred modules, or those of the others. */
void dp_host_fire_variable(struct dp_host *h, struct dp_snap_variable *v, struct dp_value *value, bool deferred);

/* host_made.c: limits on what modules add, and the loose objects. */
bool dp_host_may_add(struct dp_host *h, uint64_t bytes);
bool dp_host_loosen(struct dp_host *h, const void *object);
bool dp_host_tighten(struct dp_host *h, const void *object); /* false: it is not loose */
bool dp_host_is_loose(const struct dp_host *h, const void *object);
void dp_host_forget_loose(struct dp_host *h);

/* The snapshot that the running callback may use, or NULL. */
static inline struct dp_snapshot *dp_api_snapshot(void)
{
	const struct dp_host *h = dp_host_current();
	return h ? h->snapshot : NULL;
}

/* The struct behind a handle, or NULL: the handle is NULL, or no callback runs on a snapshot. */
static inline struct dp_snapshot *dp_api_backtrace(ptrace_backtrace_t *p)
{
	return dp_api_snapshot() ? dp_in_backtrace(p) : NULL;
}
static inline struct dp_snap_thread *dp_api_thread(ptrace_thread_t *p)
{
	return dp_api_snapshot() ? dp_in_thread(p) : NULL;
}
static inline struct dp_snap_frame *dp_api_frame(ptrace_frame_t *p)
{
	return dp_api_snapshot() ? dp_in_frame(p) : NULL;
}
static inline struct dp_snap_variable *dp_api_variable(ptrace_variable_t *p)
{
	return dp_api_snapshot() ? dp_in_variable(p) : NULL;
}

/* host_made.c: the running module's id, in the snapshot's arena; marks what the module makes. */
const char *dp_api_module_id(void);
/* Adds a comment by dynprobe, unless one starts with these words: records the original that a setter replaced. */
void dp_api_note_once(struct dp_snap_note **list, const char *words, const char *text);

/* api_global.c: reads memory from the source for the current phase. */
size_t dp_api_read(uint64_t addr, void *buf, size_t n);

#endif

/* SPDX-License-Identifier: MIT */
/* The host's own state: host*.c and api*.c only. */
#ifndef DP_PMODULES_HOST_STATE_H
#define DP_PMODULES_HOST_STATE_H

#include "pmodules/host/guard.h"
#include "pmodules/host/host_internal.h"

#include <uthash.h>
#include <utlist.h>

struct dp_module_option { /* --module=ID:key,value */
	struct dp_module_option *prev, *next;
	char *id, *key, *value;
	bool is_checked; /* that there is a module of that id */
};

struct dp_callbacks {
	struct dp_callback *at;
	size_t n, cap;
};

/* What modules made and did not add anywhere yet: only such an object may be added, and only once. */
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
	struct dp_world *world;
	enum dp_phase phase;
	uint64_t generation, generations;
	uint64_t held_ns; /* of all modules in this snapshot */
	uint64_t last_ns; /* when the last callback of this walk returned; 0: none did. Saves a look at the clock */
	unsigned entered; /* callbacks that run now, one inside of the other */
	unsigned dispatching;
	struct dp_loose *loose;
	uint64_t made; /* objects, bytes that modules added in this snapshot */
	uint64_t made_bytes;
	struct dp_arena scratch; /* texts that are borrowed until the outermost callback returns */
	enum pmodule_read_source source; /* of the last read by address; values are read by the world */
	uint64_t reads;                  /* of the world, when that was */
	char error[512]; /* bt_error() */
};

/* host_run.c: makes `m` the running one, with a deadline; leaves it again. */
struct dp_entry {
	struct pmodule *before;
	uint64_t begin, deadline;
};
struct dp_entry dp_module_enter(struct pmodule *m);
uint64_t dp_module_leave(struct pmodule *m, const struct dp_entry *entry); /* the time */
uint64_t dp_host_now(void);
uint64_t dp_host_budget(const struct dp_host *h); /* of one module while the process is held */
bool dp_host_is_held(const struct dp_host *h);    /* does the program wait for what runs now? */
/* Runs the variable callbacks on it, those of deferred modules or the others'. */
void dp_host_fire_variable(struct dp_host *h, struct dp_snap_variable *v, struct dp_value *value, bool deferred);

/* host_made.c: the bounds of what modules may add, and what is loose. */
bool dp_host_may_add(struct dp_host *h, uint64_t bytes);
bool dp_host_loosen(struct dp_host *h, const void *object);
bool dp_host_tighten(struct dp_host *h, const void *object); /* false: it is not loose */
bool dp_host_is_loose(const struct dp_host *h, const void *object);
void dp_host_forget_loose(struct dp_host *h);

/* The snapshot that the running callback may touch, or NULL. */
static inline struct dp_snapshot *dp_api_snapshot(void)
{
	const struct dp_host *h = dp_host_current();
	return h ? h->snapshot : NULL;
}

/* What is behind an object's name, or NULL: it is none, or no callback runs on a snapshot. */
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

/* host_made.c: of the module that runs, in the snapshot; for what it makes. */
const char *dp_api_module_id(void);
/* dynprobe's own comment, unless there is one that begins with these words: what a setter replaced is not lost. */
void dp_api_note_once(struct dp_snap_note **list, const char *words, const char *text);

/* api_global.c: memory as the phase has it. */
size_t dp_api_read(uint64_t addr, void *buf, size_t n);

#endif

/* SPDX-License-Identifier: MIT */
/* One target with the run's probes: they are resolved, planned, installed and removed. */
#ifndef DP_SESSION_PROCESS_SESSION_H
#define DP_SESSION_PROCESS_SESSION_H

#include "session/trace_spec.h"
#include "session/code/code_view.h"
#include "injector/injector.h"
#include "injector/tracee/tracee.h"
#include "output/output.h"

struct dp_place { /* one probe in one target */
	uint64_t addr;
	bool planned, placed, retired;
	bool pending; /* its library is not loaded; in a later session (pending.h): not for this session */
	struct dp_plan plan;
	struct dp_error *refused; /* why it is not placed */
	bool absent;              /* refused, because this program has no such place; another may have it */
	bool left_out;            /* refused, but only counted: one of many sites of a pattern (patterns.h) */
	char *retired_why;
	uint64_t recorded, damaged, unshown; /* unshown: the run had to end at once */
	/* Contexts and condition, as compiled for this site (session_scope.h). */
	bool bound_fields;
	struct dp_fields fields;
	struct dp_expr *when;
	uint64_t unpaired, crowded; /* aggregations: hits without an entry, and without room for their key */
};

struct dp_found {                     /* a resident probe of an earlier command */
	struct dp_resident *resident; /* NULL: none */
	unsigned probe;
	uint64_t event; /* sink lttng */
};

struct dp_by_calls {   /* memory is read by system calls: the fault handler could not be installed (session_trap.c) */
	char why[256]; /* empty: memory is not read by system calls */
	bool later;    /* installing the handler is tried again during the run */
	unsigned tried;
	uint64_t since_ns, next_ns; /* when the probes were installed; when the next try is due */
	uint64_t for_ns;            /* until the handler was installed; 0: to the end */
};

struct dp_new_code { /* session_code.c */
	uint64_t pages, looked_ns; /* size of the address space at the last look at the maps, and when that was */
	uint64_t next_ns; /* when the size is read again */
	uint64_t wait_ns; /* least time between two looks while the size changes */
	bool said;
};

struct dp_session {
	struct dp_target *target;
	const struct dp_trace_spec *trace;
	struct dp_place *place; /* trace->nprobes of them */
	size_t *planned;        /* planned[k]: the probe of plan k; SIZE_MAX: none */
	size_t nplanned;
	struct dp_install_stats install;
	struct dp_remove_report removal;
	struct dp_children children; /* what became of the text that fork children have */
	unsigned followed;           /* how many of them recorded */
	bool swept;                  /* they have been cleaned, as far as possible */
	bool unremoved;              /* the removal failed: removal.why */
	bool said_left;              /* dp_session_warn_of_left() did */
	struct dp_loss *loss; /* for each probe, as last read */
	uint64_t lost_before; /* all of them, when gaps between events were looked for */
	/* Sink lttng. */
	bool lttng, hooked;
	struct dp_sink_entries sink;
	struct dp_sink_stats sink_stats;
	struct dp_sink_class *classes; /* trace->nprobes of them */
	struct dp_plan hook;           /* at the start of every thread */
	struct dp_error *unhooked;     /* why the hook was refused, or NULL */
	bool kept;                     /* the probes were left: a later command parks the events */
	struct dp_found old;           /* the resident probe that this session's probe replaces (keep.c) */
	bool partial;                  /* not every probe must have a place (--follow: a program of several) */
	bool said_caged, said_caged_child; /* session_full.c */
	bool ended;
	bool survived; /* its program has ended, and fork children of it are followed */
	enum dp_watch end;
	struct dp_preview *preview; /* what --dry-run found (preview.h) */
	struct dp_session_trap *trap; /* hooks, for traps and loads that may fault; or NULL (session_trap.h) */
	bool no_faults;               /* memory is read by system calls, not by loads that may fault */
	bool no_fallback;             /* no traps in place of jumps without --tactic trap: they failed */
	struct dp_by_calls by_calls;
	struct dp_session_aggs *answers; /* session_aggs.h; NULL: events */
	struct dp_new_code new_code;
	struct dp_pending *pending;         /* --pending (pending.h); NULL in a later session */
};

/* ---- session_target.c ---------------------------------------------------------------------------------------------------- */

struct dp_error *dp_session_open(const struct dp_trace_spec *trace, pid_t pid, struct dp_session **ret) DP_MUST_CHECK;
/* Starts trace->command and stops it before its first instruction. */
struct dp_error *dp_session_launch(const struct dp_trace_spec *trace, struct dp_session **ret) DP_MUST_CHECK;
/* Takes over a process that is held at its entry point: see dp_target_adopt(). */
struct dp_error *dp_session_adopt(const struct dp_trace_spec *trace, struct dp_launch *launch, pid_t pid,
                                  struct dp_session **ret) DP_MUST_CHECK;
/*
 * Finds every probe's site; changes nothing in the target. A probe that names nothing is an error for the whole run, because a
 * run with a typo should not be half done. One of a pattern's probes is refused alone. s->trace may have been replaced since the
 * session was opened, if only the probes differ.
 */
struct dp_error *dp_session_resolve(struct dp_session *s) DP_MUST_CHECK;
/* Of an error: "; did you mean A?", if A is near the name of probe `i` and in the program, or in the module that was typed; or "". */
const char *dp_session_near(const struct dp_session *s, size_t i, const struct dp_error *err);
/* Advises --follow where a launched command lacks a place, but only starts other programs. Takes and returns the error. */
struct dp_error *dp_session_advise(const struct dp_session *s, struct dp_error *err) DP_MUST_CHECK;
/* After that: is any probe to be placed here? */
bool dp_session_has_places(const struct dp_session *s);
/*
 * Opens a later session on the same process, for the pending probes of `s`. dp_session_resolve_beside() refuses a probe, finds
 * its site, or leaves it pending.
 */
struct dp_error *dp_session_beside(const struct dp_session *s, struct dp_session **ret) DP_MUST_CHECK;
struct dp_error *dp_session_resolve_beside(struct dp_session *later, const struct dp_session *s) DP_MUST_CHECK;
/* Whether an aggregation has backtraces as keys; whether backtraces are recorded or are keys. */
bool dp_session_counts_stacks(const struct dp_trace_spec *trace);
bool dp_session_wants_unwind(const struct dp_trace_spec *trace);

/* Removes the probes; the rings can still be drained. */
struct dp_error *dp_session_remove(struct dp_session *s) DP_MUST_CHECK;
/* After that, if no probes were left on purpose: removes the probes that fork children inherited. `stop`: clean no more of them.
 */
void dp_session_sweep(struct dp_session *s, bool (*stop)(void *data), void *data);
/* Adds a removal to s->removal. */
void dp_session_note_removal(struct dp_session *s, const struct dp_remove_report *report);
/* For runs without a summary: whether the removal has left something in a process that has not ended. Says so, once. */
bool dp_session_warn_of_left(struct dp_session *s);
void dp_session_warn_of_children(const struct dp_session *s);
struct dp_session *dp_session_destroy(struct dp_session *s);

/* ---- session.c ------------------------------------------------------------------------------------------------------------ */

/* Plans and installs the probes. A probe that cannot be placed gets place[i].refused. */
struct dp_error *dp_session_install(struct dp_session *s) DP_MUST_CHECK;
#define DP_NOWHERE UINT64_C(0x100000000000)
/* Plans with made-up addresses (from DP_NOWHERE on) for what installing would map; does not change or stop the target. */
struct dp_error *dp_session_dry_run(struct dp_session *s) DP_MUST_CHECK;
/* Leaves the probes as resident probes; later commands read `manifest`. */
struct dp_error *dp_session_keep(struct dp_session *s, const char *manifest) DP_MUST_CHECK;
/* Adds an installation to s->install. */
void dp_session_note_install(struct dp_session *s, const struct dp_install_stats *stats);
size_t dp_session_placed(const struct dp_session *s);

/* For hooks: finds "MODULE!NAME" and its first instruction that may be patched. */
struct dp_error *dp_session_find_function(struct dp_session *s, struct dp_code_view *view, const char *name, struct dp_site *site,
                                          const struct dp_text **text) DP_MUST_CHECK;

/* ---- session_sink.c: for probes that emit through LTTng ------------------------------------------------------------------ */

/* Loads the sink, registers the events, primes the threads (prepares them to emit). Call it before planning. */
struct dp_error *dp_session_sink(struct dp_session *s) DP_MUST_CHECK;
void dp_session_sink_runtime(const struct dp_session *s, struct dp_runtime *rt);
void dp_session_sink_request(struct dp_session *s, size_t i, struct dp_request *request, struct dp_error **refused);
struct dp_error *dp_session_plan_hook(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view) DP_MUST_CHECK;
struct dp_error *dp_session_prime_late(struct dp_session *s) DP_MUST_CHECK;
/* True if an LTTng session records the events of all placed probes. */
bool dp_session_wanted(const struct dp_session *s);
/* From now on, hits of events that no session records are counted as lost. */
void dp_session_expect(struct dp_session *s);
/* Lets the sink reuse the events of removed probes; of refused probes. */
void dp_session_park(struct dp_session *s);
void dp_session_park_refused(struct dp_session *s);
void dp_session_sink_fini(struct dp_session *s);

#endif

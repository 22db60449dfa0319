/* SPDX-License-Identifier: MIT */
/* One target with the run's probes in it: from what was asked to what stands, and out again. */
#ifndef DP_SESSION_H
#define DP_SESSION_H

#include "session/trace_spec.h"
#include "session/code/code_view.h"
#include "injector/injector.h"
#include "injector/tracee/tracee.h"
#include "output/output.h"

struct dp_place { /* one probe in one target */
	uint64_t addr;
	bool planned, placed, retired;
	bool pending; /* its library is not there; in a session beside another one: not its business */
	struct dp_plan plan;
	struct dp_error *refused; /* why it is not placed */
	bool left_out;            /* refused, which is a note only: one of a pattern's many (patterns.h) */
	char *retired_why;
	uint64_t recorded, damaged, unshown; /* unshown: for the run was to end at once */
	/* What the names in contexts and condition mean here (session_scope.h). */
	bool bound_fields;
	struct dp_fields fields;
	struct dp_expr *when;
	uint64_t unpaired, crowded; /* answers: hits without a duration, and without room for their key */
};

struct dp_found { /* a probe that an earlier tool left */
	struct dp_resident *standing; /* NULL: none */
	unsigned probe;
	uint64_t event; /* sink lttng */
};

struct dp_by_calls { /* memory is read by system calls: the handler's moment did not come (session_trap.c) */
	char why[256]; /* empty: it is not */
	bool later;    /* the handler is tried again while the probes stand */
	unsigned tried;
	uint64_t since_ns, next_ns; /* the probes stand; the next try is due */
	uint64_t for_ns;            /* 0: to the end */
};

struct dp_session {
	struct dp_target *target;
	const struct dp_trace_spec *trace;
	struct dp_place *place; /* trace->nprobes of them */
	size_t *planned;        /* planned[k]: the probe of plan k, SIZE_MAX of one that is nobody's */
	size_t nplanned;
	struct dp_install_stats install;
	struct dp_remove_report removal;
	struct dp_loss *loss; /* of each probe, as last noted */
	/* Sink lttng. */
	bool lttng, hooked;
	struct dp_sink_entries sink;
	struct dp_sink_stats sink_stats;
	struct dp_sink_class *classes; /* trace->nprobes of them */
	struct dp_plan hook;           /* at every thread's start */
	struct dp_error *unhooked;     /* why there is no hook */
	bool kept;                     /* the events are a later tool's to park */
	struct dp_found old; /* the standing probe whose place this session's one takes (keep.c) */
	bool ended;
	enum dp_watch end;
	struct dp_preview *preview; /* what --dry-run found (preview.h) */
	struct dp_session_trap *trap; /* hooks, once there are to be traps, or loads that may fault (session_trap.h) */
	bool no_faults;               /* loads that may fault go by system calls */
	bool no_spare;                /* traps that nobody asked for cannot be had */
	struct dp_by_calls by_calls;  /* if that was not meant to be */
	struct dp_session_answers *answers; /* answers.h; NULL: events */
	struct dp_pending *pending;   /* --pending (pending.h); not in a session beside another one */
};

/* ---- session_target.c ---------------------------------------------------------------------------------------------------- */

struct dp_error *dp_session_open(const struct dp_trace_spec *trace, pid_t pid, struct dp_session **ret) DP_MUST_CHECK;
/* Starts trace->command and holds it. */
struct dp_error *dp_session_launch(const struct dp_trace_spec *trace, struct dp_session **ret) DP_MUST_CHECK;
/*
 * Finds every probe's site. A probe that names nothing is an error for the whole run: a typo should not run half. (One of many that a
 * pattern stands for is refused alone.) The target is not touched. The options may be others than at opening, if only the probes
 * differ.
 */
struct dp_error *dp_session_resolve(struct dp_session *s) DP_MUST_CHECK;
/*
 * For what pends in `s`: a second session of the same process, resolved by dp_session_resolve_beside(). What is found is refused or will be
 * placed; what is not stays pending there.
 */
struct dp_error *dp_session_beside(const struct dp_session *s, struct dp_session **ret) DP_MUST_CHECK;
struct dp_error *dp_session_resolve_beside(struct dp_session *later, const struct dp_session *s) DP_MUST_CHECK;
/* Are backtraces recorded, or counted by? */
bool dp_session_counts_stacks(const struct dp_trace_spec *trace);
bool dp_session_wants_unwind(const struct dp_trace_spec *trace);

/* ---- session.c ------------------------------------------------------------------------------------------------------------ */

/* Plans and installs; refusals to place go to place[i].refused. */
struct dp_error *dp_session_install(struct dp_session *s) DP_MUST_CHECK;
/* Plans with made-up addresses for what install would map; nothing in the target is touched or stopped. */
#define DP_NOWHERE UINT64_C(0x100000000000)
struct dp_error *dp_session_dry_run(struct dp_session *s) DP_MUST_CHECK;
/* Leaves the probes in place for later tools, which will read `manifest`. */
struct dp_error *dp_session_keep(struct dp_session *s, const char *manifest) DP_MUST_CHECK;
/* Takes the probes out and notes the losses; the rings can still be drained. */
struct dp_error *dp_session_remove(struct dp_session *s) DP_MUST_CHECK;
/* One more installation, in the sum of all. */
void dp_session_note_install(struct dp_session *s, const struct dp_install_stats *stats);
/* One more report of a removal, in the sum of all. */
void dp_session_note_removal(struct dp_session *s, const struct dp_remove_report *report);
struct dp_session *dp_session_destroy(struct dp_session *s);
size_t dp_session_placed(const struct dp_session *s);

/* Of functions that a hook goes to: "MODULE!NAME" and the first instruction that may be patched there. */
struct dp_error *dp_session_find_function(struct dp_session *s, struct dp_code_view *view, const char *name, struct dp_site *site,
                                          const struct dp_text **text) DP_MUST_CHECK;

/* ---- session_sink.c: for probes that emit through LTTng ------------------------------------------------------------------ */

/* Loads the sink, registers the events, primes the threads. Before planning. */
struct dp_error *dp_session_sink(struct dp_session *s) DP_MUST_CHECK;
void dp_session_sink_runtime(const struct dp_session *s, struct dp_runtime *rt);
void dp_session_sink_request(struct dp_session *s, size_t i, struct dp_request *request, struct dp_error **refused);
struct dp_error *dp_session_plan_hook(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view) DP_MUST_CHECK;
struct dp_error *dp_session_prime_late(struct dp_session *s) DP_MUST_CHECK;
/* A session of LTTng's records every placed probe: its hits from now on are events. */
bool dp_session_wanted(const struct dp_session *s);
/* They should be: hits are counted as lost until they are. */
void dp_session_expect(struct dp_session *s);
/* The events of probes that are gone, or never came to stand, may be used again. */
void dp_session_park(struct dp_session *s);
void dp_session_park_refused(struct dp_session *s);
void dp_session_sink_fini(struct dp_session *s);

#endif

/* SPDX-License-Identifier: MIT */
/* Aggregations and durations: what the probes of one target count and measure. */
#ifndef DP_SESSION_PROCESS_SESSION_AGGS_H
#define DP_SESSION_PROCESS_SESSION_AGGS_H

#include "session/process/session.h"

struct dp_session_aggs {
	struct dp_agg *answer; /* trace->nprobes of them */
	struct dp_cells_want want;
	bool timed;          /* durations are needed */
	uint64_t *entry;     /* of pair i + 1: the address of its entry */
	size_t *probe;       /* of pair i + 1: the probe at its entry, from 1 on; 0: the entry belongs to no probe */
	const char **chosen; /* for system calls: the condition on the entry; NULL: all. Borrowed from struct dp_typed */
	struct dp_expr **chosen_when;
	struct dp_error **no_entry; /* why the entry cannot be probed, or NULL */
	size_t npairs;
	size_t nprobes;
	struct dp_fields none; /* what entries record: nothing */
};

enum dp_aggs_group { /* the keys of --by that are the process's own: the tool knows them, so the process counts without keys */
	             DP_GROUP_NONE,
	             DP_GROUP_PID, /* as the tool's user sees it, not in the process's pid namespace; not where fork children
	                              count (rows.c) */
	             DP_GROUP_COMM,
	             DP_GROUP_EXE,
};
enum dp_aggs_group dp_aggs_grouped(const struct dp_trace_spec *trace);

/* Whether the hit has to find the value of this key. */
bool dp_aggs_in_target(const struct dp_trace_spec *trace, size_t key);
/* Whether the agent looks for callers. */
bool dp_aggs_unwind(const struct dp_trace_spec *trace);
/* How many keys the hit has to find; the frames of the backtrace that is a key, or 0. */
unsigned dp_aggs_values(const struct dp_trace_spec *trace);
unsigned dp_aggs_depth(const struct dp_asked *asked);
/* The words of the strings among them: of each (0: it is none), and together. */
unsigned dp_aggs_texts(const struct dp_trace_spec *trace, unsigned words[DP_AGG_KEYS]);
/* The aggregation of probe `i`; also after an error call dp_aggs_answer_fini(). */
struct dp_error *dp_aggs_answer(struct dp_session *s, size_t i, struct dp_agg *ret) DP_MUST_CHECK;
void dp_aggs_answer_fini(struct dp_agg *answer);
/* The cells of a row: ret->words, pending, extreme. */
void dp_aggs_cells(const struct dp_asked *a, struct dp_cells_want *ret);

/* Call it before each planning: drops the results of an earlier one, and tells the target how many cells to make. */
struct dp_error *dp_session_aggs_begin(struct dp_session *s) DP_MUST_CHECK;
/* Compiles the aggregation's expressions at each place: fails for a typo, changes nothing. After dp_session_scope(). */
struct dp_error *dp_session_aggs_check(struct dp_session *s) DP_MUST_CHECK;
/* Says which keys are addresses of strings. After dp_session_aggs_check(). */
void dp_session_aggs_note_keys(struct dp_session *s);
/* Completes the probe's request, and plans the entry that it is paired with. An error refuses this probe. */
struct dp_error *dp_session_aggs_request(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view, size_t i,
                                         struct dp_request *request) DP_MUST_CHECK;
/* Reads how many hits of probe i had no entry, or no room for their key. */
void dp_session_aggs_loss(struct dp_session *s, unsigned i);
/*
 * Whether a probe records the flags register, or a probe of another command at the same site might. Then stubs preserve the
 * flags even where the program does not use them any more.
 */
bool dp_session_shows_flags(const struct dp_session *s);
/* For dry runs: made-up addresses of the cells. */
void dp_session_aggs_nowhere(struct dp_runtime *rt);
struct dp_session_aggs *dp_session_aggs_destroy(struct dp_session_aggs *a);

/* The probe whose row shows probe `i`: the first of a function's returns, or of a system call's sites. */
size_t dp_aggs_row(const struct dp_trace_spec *trace, size_t i);

#endif

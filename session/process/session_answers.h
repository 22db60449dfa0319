/* SPDX-License-Identifier: MIT */
/* Aggregations instead of events: what is counted in one target. */
#ifndef DP_SESSION_ANSWERS_H
#define DP_SESSION_ANSWERS_H

#include "session/process/session.h"

struct dp_session_answers {
	struct dp_answer *answer; /* trace->nprobes of them */
	struct dp_cells_want want;
	bool timed;                 /* durations are asked for */
	uint64_t *entry;            /* of pair number i + 1: the function's */
	const char **chosen;        /* of system calls: those that are meant, or NULL: all. Of struct dp_typed */
	struct dp_expr **chosen_when;
	struct dp_error **no_entry; /* why that one cannot be probed, or NULL */
	size_t npairs;
	size_t nprobes;
	struct dp_fields none; /* what entries record */
};

/* Before every planning: forgets what an earlier one made, and tells the target how many cells there will be. */
struct dp_error *dp_session_answers_begin(struct dp_session *s) DP_MUST_CHECK;
/* Completes the probe's request; also plans the entry that it pairs with. An error is a refusal of this probe. */
struct dp_error *dp_session_answers_request(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view, size_t i,
                                            struct dp_request *request) DP_MUST_CHECK;
/* Takes over what probe i has lost for want of an entry, or of room for a key. */
void dp_session_answers_loss(struct dp_session *s, unsigned i);
/*
 * Does a probe show the program's flags, or may one that others have left or will put beside ours? Then stubs keep them even
 * where the program does not look at them any more.
 */
bool dp_session_shows_flags(const struct dp_session *s);
/* For plans without a target: where cells would be. */
void dp_session_answers_nowhere(struct dp_runtime *rt);
struct dp_session_answers *dp_session_answers_destroy(struct dp_session_answers *a);

/* The probe that probe `i` is one with, to people: the first of a function's returns, of a system call's places. */
size_t dp_answers_row(const struct dp_trace_spec *trace, size_t i);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * From threads' registers and memory to frames and variables. What one pc means (symbol, line, inlined functions, variables and where they
 * are, the rule for its caller) is worked out once and remembered: the rehearsal does it for the stacks of the moment before, so that the
 * pause is short.
 */
#ifndef DP_PMODULES_EXTRACT_H
#define DP_PMODULES_EXTRACT_H

#include "pmodules/source/stopped.h"
#include "pmodules/value/value.h"

struct dp_extract; /* opaque */
struct dp_extract_options {
	struct dp_limits limits;
	bool no_variables;
	bool no_values;             /* nobody will ask for dp_snap_variable's value: there is none */
	const char *const *globals; /* names or globs ("*"; "module!name"); NULL-terminated, or NULL */
	bool tls;
	const char *const *tls_names; /* or NULL: all */
	const char *const *load;    /* --load: substrings of modules' paths whose globals are meant; NULL: all; NULL-terminated */
};
struct dp_error *dp_extract_create(struct dp_world *w, const struct dp_extract_options *options, struct dp_extract **ret) DP_MUST_CHECK;
struct dp_extract *dp_extract_destroy(struct dp_extract *x);
/* Another rehearsal begins: what the last one saw may have changed. */
void dp_extract_renew(struct dp_extract *x);
/* Works out what the frames of this thread mean; memory is read by the world. Errors are kept for later. */
void dp_extract_rehearse(struct dp_extract *x, const struct dp_stopped_thread *t);
/* The thread with its frames and their variables at the end of the snapshot's threads; NULL without memory. */
struct dp_snap_thread *dp_extract_thread(struct dp_extract *x, const struct dp_stopped_thread *t, struct dp_snapshot *s);
void dp_extract_globals(struct dp_extract *x, struct dp_snapshot *s);
/* Thread-locals of one extracted thread. */
void dp_extract_tls(struct dp_extract *x, const struct dp_stopped_thread *t, struct dp_snap_thread *into);
/*
 * Of a thread that faulted: why, decoded from its instruction and registers; classifiers go to the snapshot. Of any thread: its innermost
 * instruction as text.
 */
void dp_extract_fault(struct dp_extract *x, const struct dp_stopped_thread *t, struct dp_snap_thread *into);

#endif

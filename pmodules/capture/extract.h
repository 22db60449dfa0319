/* SPDX-License-Identifier: MIT */
/*
 * Turns threads' registers and memory into frames and variables. What a pc means (symbol, line, inlined functions, variable
 * locations, unwind rule) is computed once and cached. The prefetch does this for the stacks before the stop, which keeps the
 * pause short.
 */
#ifndef DP_PMODULES_CAPTURE_EXTRACT_H
#define DP_PMODULES_CAPTURE_EXTRACT_H

#include "pmodules/source/stopped.h"
#include "pmodules/value/value.h"

struct dp_extract; /* opaque */
struct dp_extract_options {
	struct dp_limits limits;
	bool no_variables;
	bool no_values;             /* dp_snap_variable's value stays NULL: the caller does not use it */
	const char *const *globals; /* names or globs ("*"; "module!name"); NULL-terminated, or NULL */
	bool tls;
	const char *const *tls_names; /* or NULL: all */
	const char *const *load;    /* --load: capture globals of modules whose path contains one of these; NULL: all */
};
struct dp_error *dp_extract_create(struct dp_debug_ctx *w, const struct dp_extract_options *options, struct dp_extract **ret) DP_MUST_CHECK;
struct dp_extract *dp_extract_destroy(struct dp_extract *x);
/* Begins another prefetch: forgets what the last one read, since the memory may have changed. */
void dp_extract_renew(struct dp_extract *x);
/* Resolves this thread's frames and prefetches their variables' memory. Errors surface at the capture. */
void dp_extract_rehearse(struct dp_extract *x, const struct dp_stopped_thread *t);
/* Appends the thread, with its frames and variables, to the snapshot. NULL: out of memory. */
struct dp_snap_thread *dp_extract_thread(struct dp_extract *x, const struct dp_stopped_thread *t, struct dp_snapshot *s);
void dp_extract_globals(struct dp_extract *x, struct dp_snapshot *s);
/* Thread-locals of one extracted thread. */
void dp_extract_tls(struct dp_extract *x, const struct dp_stopped_thread *t, struct dp_snap_thread *into);

#endif

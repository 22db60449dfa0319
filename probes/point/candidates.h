/* SPDX-License-Identifier: MIT */
/* The places that a symbol's name may mean, collected over modules, and the messages when that is not exactly one. */
#ifndef DP_PROBES_CANDIDATES_H
#define DP_PROBES_CANDIDATES_H

#include "probes/image/image.h"

struct dp_candidate {
	struct dp_module *module;
	const struct dp_symbol *symbol;
};

struct dp_candidates {
	struct dp_candidate *item; /* different addresses */
	size_t n, capacity;
	struct dp_candidate data; /* a variable of that name, if one was met */
	bool failed;              /* out of memory */
};

/* Is `m` what `spec` has before its '!'? The vdso is meant only where it is named. */
bool dp_module_matches(const struct dp_module *m, const struct dp_spec *spec);
/* Size of the function at a symbol: its own, else what is left of its FDE; 0 if neither is known. */
uint64_t dp_symbol_size(struct dp_module *m, const struct dp_symbol *s);
/*
 * Adds what the symbols of `m` (its own, or those of its debug file) have under `name`; older versions of a symbol count only if
 * there is no default one.
 */
void dp_candidates_add(struct dp_candidates *c, struct dp_module *m, bool debug, const struct dp_symbol_name *name);
void dp_candidates_fini(struct dp_candidates *c);

/* candidate_errors.c */
struct dp_error *dp_candidates_ambiguous(const struct dp_candidates *c, const struct dp_spec *spec) DP_MUST_CHECK;
struct dp_error *dp_candidates_unknown(const struct dp_candidates *c, struct dp_image *image,
                                       const struct dp_spec *spec) DP_MUST_CHECK;
struct dp_error *dp_candidates_ifunc(const struct dp_candidate *c) DP_MUST_CHECK;
struct dp_error *dp_candidates_no_module(const struct dp_image *image, const struct dp_spec *spec) DP_MUST_CHECK;

#endif

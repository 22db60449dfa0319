/* SPDX-License-Identifier: MIT */
/* The places that a symbol name may mean, over all modules, and the errors if it is not exactly one. */
#ifndef DP_PROBES_POINT_CANDIDATES_H
#define DP_PROBES_POINT_CANDIDATES_H

#include "probes/image/image_internal.h"
#include "probes/point/resolve.h"

struct dp_candidate {
	struct dp_module *module;
	const struct dp_symbol *symbol;
};

struct dp_candidates {
	struct dp_candidate *item; /* distinct addresses */
	size_t n, capacity;
	struct dp_candidate data; /* a variable with that name, if one was found */
	bool failed;              /* out of memory */
};

/* Size of the function at a symbol: the symbol's, else the rest of its FDE; 0 if unknown. */
uint64_t dp_symbol_size(struct dp_module *m, const struct dp_symbol *s);
/*
 * Adds the symbols of `m` (its own, or those of its debug file) with that name. Old symbol versions count only if there is no
 * default version.
 */
void dp_candidates_add(struct dp_candidates *c, struct dp_module *m, bool debug, const struct dp_symbol_name *name);
void dp_candidates_fini(struct dp_candidates *c);

/* interposed.c: is it the allocator that the program uses in place of libc's, which is among the candidates? */
bool dp_candidate_replaces_libc(const struct dp_candidates *c, size_t at);

/* candidate_errors.c */
struct dp_error *dp_candidates_ambiguous(const struct dp_candidates *c, const struct dp_spec *spec) DP_MUST_CHECK;
struct dp_error *dp_candidates_unknown(const struct dp_candidates *c, struct dp_image *image,
                                       const struct dp_spec *spec) DP_MUST_CHECK;
struct dp_error *dp_candidates_ifunc(const struct dp_candidate *c) DP_MUST_CHECK;
struct dp_error *dp_candidates_no_module(const struct dp_image *image, const struct dp_spec *spec) DP_MUST_CHECK;

#endif

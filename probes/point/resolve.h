/* SPDX-License-Identifier: MIT */
/* The one site that a spec names, and the spec of a selected place. */
#ifndef DP_PROBES_POINT_RESOLVE_H
#define DP_PROBES_POINT_RESOLVE_H

#include "probes/image/image.h"
#include "probes/point/spec.h"

struct dp_site {
	dp_addr addr;
	struct dp_function function; /* start 0 if unknown */
	struct dp_module *module;
};
/*
 * Finds the one site that `spec` names. Unknown symbol: DP_TAG_NO_SYMBOL with "did you mean" candidates. Several addresses:
 * DP_TAG_AMBIGUOUS with the module!symbol forms; aliases of one address count once. `main` of a stripped executable is found from
 * the argument that _start passes to __libc_start_main. For an IFUNC symbol the message asks for one of its implementations. An
 * address with `module!` is an address in the file, without it one in the target. Instruction boundaries are not checked here
 * (see dp_boundaries in trampoline/). A selected place is not searched for in its own image; ret->function.name then points into
 * the spec, which must live as long as the site.
 */
struct dp_error *dp_image_resolve(struct dp_image *image, const struct dp_spec *spec, struct dp_site *ret) DP_MUST_CHECK;
/* For people: DP_TAG_NO_SYMBOL in a program that was stripped becomes DP_TAG_STRIPPED. Takes `err` (or NULL), returns it or another. */
struct dp_error *dp_image_explain_unknown(struct dp_image *image, const struct dp_spec *spec, struct dp_error *err) DP_MUST_CHECK;
/*
 * interposed.c: the module whose function of that name (malloc, free, ...) the program calls in place of that of `m`, which is
 * libc; or NULL.
 */
struct dp_module *dp_image_interposer(struct dp_image *image, const struct dp_module *m, const char *name);
/* True if the image has a module that the spec means. A spec without a module matches any. */
bool dp_image_has_module(const struct dp_image *image, const struct dp_spec *spec);

/*
 * The spec of a selected place, `offset` in the function: module!symbol+0x4, or module!0x1234 if the symbol does not name it
 * alone. Its parts are filled in, not parsed. Where it is (struct dp_selected_at) is left out if this image has more places with
 * that text, or if the symbol is an IFUNC: dp_image_resolve() then searches and refuses it.
 */
struct dp_error *dp_image_spec_of(struct dp_image *image, const struct dp_function *f, uint64_t offset,
                                  struct dp_spec *ret) DP_MUST_CHECK;

#endif

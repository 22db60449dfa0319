/* SPDX-License-Identifier: MIT */
/* All places that a spec names. */
#ifndef DP_PROBES_POINT_SELECT_SELECT_H
#define DP_PROBES_POINT_SELECT_SELECT_H

#include "probes/point/places.h"
#include "probes/point/spec.h"

/*
 * The functions that `spec` names. A symbol without special characters is resolved as by dp_image_resolve(), with its errors; so
 * is one that has special characters in its own name. A pattern matches functions by their symbols: aliases of an address count
 * once; functions of the vdso, PLT stubs and labels without a type are left out. So are functions of which any alias matches
 * `except` (patterns of functions, or of module!function). DP_TAG_NO_SYMBOL if nothing is left.
 */
struct dp_error *dp_image_select(struct dp_image *image, const struct dp_spec *spec, const char *const *except, size_t nexcept,
				 struct dp_selection *ret) DP_MUST_CHECK;

#endif

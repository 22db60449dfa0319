/* SPDX-License-Identifier: MIT */
/* Finds more places for a name: overloads, PLT entries, inlined copies. */
#ifndef DP_PROBES_POINT_SELECT_MORE_H
#define DP_PROBES_POINT_SELECT_MORE_H

#include "probes/point/places.h"
#include "probes/point/spec.h"

/*
 * `spec` is a symbol without a pattern. *known: the symbol exists, and dp_image_resolve() finds it (or says why not). If not,
 * finds functions with that C++ or Rust name, and PLT entries (NAME@plt). With `inlined` also finds where the function was
 * inlined, from the debug information of the executable and of the symbol's module. The result may be empty.
 */
struct dp_error *dp_image_more(struct dp_image *image, const struct dp_spec *spec, bool inlined, bool *known,
                               struct dp_selection *ret) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/* What a name stands for besides the one symbol of that name. */
#ifndef DP_PROBES_MORE_H
#define DP_PROBES_MORE_H

#include "probes/probes.h"

/*
 * `spec` is a symbol without a pattern. *known: there is such a symbol, dp_image_resolve() finds it (or says why not). If there
 * is none: the functions whose C++ or Rust name it is, and PLT entries (NAME@plt). With `inlined`, in either case: the places
 * where the function was inlined, by the debug information of the executable and of the module that has the symbol. May find
 * nothing.
 */
struct dp_error *dp_image_more(struct dp_image *image, const struct dp_spec *spec, bool inlined, bool *known,
                               struct dp_selection *ret) DP_MUST_CHECK;

#endif

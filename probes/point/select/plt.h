/* SPDX-License-Identifier: MIT */
/* Finds PLT entries: the stubs through which a module calls functions of other modules. */
#ifndef DP_PROBES_POINT_SELECT_PLT_H
#define DP_PROBES_POINT_SELECT_PLT_H

#include "probes/point/places.h"
#include "probes/point/spec.h"

/* Adds the PLT entries that `spec` names (NAME@plt, as in gdb and objdump). */
void dp_plt_find(struct dp_image *image, const struct dp_spec *spec, struct dp_selection *ret);

#endif

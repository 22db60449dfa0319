/* SPDX-License-Identifier: MIT */
/* PLT entries: the stubs by which a module calls functions of others. */
#ifndef DP_PROBES_PLT_H
#define DP_PROBES_PLT_H

#include "probes/point/places.h"

/* Adds those that `spec` names (NAME@plt, as gdb and objdump have it). */
void dp_plt_find(struct dp_image *image, const struct dp_spec *spec, struct dp_places *ret);

#endif

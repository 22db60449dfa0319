/* SPDX-License-Identifier: MIT */
/* Functions that the process generated, by the names that it gives them. */
#ifndef DP_PROBES_IMAGE_FUNCTION_GENERATED_H
#define DP_PROBES_IMAGE_FUNCTION_GENERATED_H

#include "probes/image/perf_map.h"

/* The generated function around `addr`, which is in no module; *file is "perf-123.map" or "jit-123.dump". False: it has no name.
 */
bool dp_image_generated_at(struct dp_image *image, dp_addr addr, struct dp_perf_name *ret, const char **file);

#endif

/* SPDX-License-Identifier: MIT */
#include "probes/image/function/generated.h"

#include "probes/image/image.h"

bool dp_image_generated_at(struct dp_image *image, dp_addr addr, struct dp_perf_name *ret, const char **file)
{
	return !dp_image_module_at(image, addr) && dp_perf_map_find(image, addr, ret, file);
}

/* SPDX-License-Identifier: MIT */
/* Which image it is, and the names of one whose process is gone. */
#include "probes/image/image_internal.h"

#include <stdatomic.h>

void dp_image_number(struct dp_image *image)
{
	static atomic_uint_fast64_t last;
	image->serial = atomic_fetch_add(&last, 1) + 1;
}

uint64_t dp_image_serial(const struct dp_image *image)
{
	return image->serial;
}

void dp_image_set_names(struct dp_image *image, const struct dp_code_names *names)
{
	image->names = *names;
}

const struct dp_code_name *dp_image_code_name(const struct dp_image *image, uint64_t pc, bool exact)
{
	return image->names.find ? image->names.find(pc, exact, image->names.data) : NULL;
}

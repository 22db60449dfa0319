/* SPDX-License-Identifier: MIT */
/* The part of an SVG that is drawn without a script: in previews, mail, and pages that embed it as an image. */
#ifndef DP_OUTPUT_FLAME_FLAME_PICTURE_H
#define DP_OUTPUT_FLAME_FLAME_PICTURE_H

#include "output/flame/flame_internal.h"

struct dp_flame_picture {
	const struct dp_flame_box *box;
	size_t n;
};
/* The attributes of its size. */
struct dp_error *dp_flame_put_size(const struct dp_flame_box *box, size_t n, FILE *to) DP_MUST_CHECK;
struct dp_error *dp_flame_put_picture(const struct dp_flame *f, const struct dp_flame_shown *shown,
                                      const struct dp_flame_picture *of, FILE *to) DP_MUST_CHECK;

#endif

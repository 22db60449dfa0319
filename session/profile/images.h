/* SPDX-License-Identifier: MIT */
/* The code that a sampled process had mapped, by time: a sample's time says which code its addresses belong to. */
#ifndef DP_SESSION_PROFILE_IMAGES_H
#define DP_SESSION_PROFILE_IMAGES_H

#include "probes/probes.h"

struct dp_stacks;
enum { DP_IMAGES_MAX = 16 };
#define DP_IMAGES_NONE UINT32_MAX

struct dp_mapped {
	struct dp_image *image;
	uint8_t *unwind;
	uint64_t since_ns;
};
struct dp_images { /* the last DP_IMAGES_MAX images; their numbers begin at 0 */
	struct dp_mapped of[DP_IMAGES_MAX];
	struct dp_mapped none; /* for times without an image */
	uint32_t n;
};
struct dp_error *dp_images_init(struct dp_images *s) DP_MUST_CHECK;
void dp_images_fini(struct dp_images *s);
/* Takes ownership of `m` and its image. If it replaces an old image, retires that in `stacks` (or NULL). */
void dp_images_add(struct dp_images *s, struct dp_mapped m, struct dp_stacks *stacks);
/* The image at a time; *number is DP_IMAGES_NONE if it is unknown. */
const struct dp_mapped *dp_images_at(const struct dp_images *s, uint64_t ns, uint32_t *number);
struct dp_image *dp_images_get(const struct dp_images *s, uint32_t number);
/* Whether both images have the same code at `addr`. */
bool dp_images_agree(const struct dp_image *a, const struct dp_image *b, uint64_t addr);
/*
 * An identifier of the frame's function that does not depend on where it is mapped. `several`: nor on the process, if the
 * function is in a file.
 */
uint64_t dp_images_function(const struct dp_images *s, uint32_t number, uint64_t frame, bool exact, bool several);

#endif

/* SPDX-License-Identifier: MIT */
/* The code that a sampled process had mapped, and when: a sample's addresses mean something only together with its time. */
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
struct dp_images { /* the last ones, by their numbers; the first is 0 */
	struct dp_mapped of[DP_IMAGES_MAX];
	struct dp_mapped none; /* nothing is known */
	uint32_t n;
};
struct dp_error *dp_images_init(struct dp_images *s) DP_MUST_CHECK;
void dp_images_fini(struct dp_images *s);
/* Takes `m`, its image too. `stacks` (or NULL) are told of the image that has to go for it. */
void dp_images_add(struct dp_images *s, struct dp_mapped m, struct dp_stacks *stacks);
/* What was mapped then; DP_IMAGES_NONE if that is not known. */
const struct dp_mapped *dp_images_at(const struct dp_images *s, uint64_t ns, uint32_t *number);
struct dp_image *dp_images_get(const struct dp_images *s, uint32_t number);
/* Is the same code there? */
bool dp_images_agree(const struct dp_image *a, const struct dp_image *b, uint64_t addr);
/* What the function at `pc` is known by, wherever it is mapped. */
uint64_t dp_images_function(const struct dp_images *s, uint32_t number, uint64_t pc, bool exact);

#endif

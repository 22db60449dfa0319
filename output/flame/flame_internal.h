/* SPDX-License-Identifier: MIT */
#ifndef DP_OUTPUT_FLAME_FLAME_INTERNAL_H
#define DP_OUTPUT_FLAME_FLAME_INTERNAL_H

#include "base/arena.h"
#include "base/buf.h"
#include "output/flame/flame.h"

#define DP_FLAME_DEPTH 512u /* frames of a stack that are shown */
#define DP_FLAME_WIDTH 1200 /* of the picture, in pixels: what a tenth of a pixel is measured by */
#define DP_FLAME_NONE  UINT32_MAX

struct dp_flame_node {
	uint32_t name, parent, first, next; /* of the nodes: DP_FLAME_NONE for none */
	double total;
};
struct dp_flame {
	struct dp_arena arena;
	struct dp_flame_name *names; /* by text */
	const char **name;           /* by number */
	size_t nnames, names_capacity;
	struct dp_flame_node *node; /* 0 is the root; a parent comes before its children */
	size_t n, capacity;
	uint32_t *slot; /* nodes by parent and name; nslots is a power of two */
	size_t nslots;
	struct dp_flame_stats stats;
	bool failed; /* out of memory */
};

struct dp_flame_box { /* a frame that is shown; in the order of the tree, siblings by name */
	uint32_t node;
	unsigned depth;
	double start;
};
/* The node of a stack, outermost frame first; it gets no weight. DP_FLAME_NONE: out of memory. */
uint32_t dp_flame_stack(struct dp_flame *f, const char *const *frame, size_t n);
/* The frames that are wide enough. Sets stats.narrow; the caller frees `ret`. False: out of memory. */
bool dp_flame_boxes(struct dp_flame *f, struct dp_flame_box **ret, size_t *n);

#endif

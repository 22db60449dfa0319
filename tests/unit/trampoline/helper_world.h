/* SPDX-License-Identifier: MIT */
/* A planner with its address space, and access to the code that it generates. */
#ifndef DP_TESTS_TRAMPOLINE_HELPER_WORLD_H
#define DP_TESTS_TRAMPOLINE_HELPER_WORLD_H

#include "helper_text.h"

struct world {
	struct dp_space *space;
	struct dp_planner *planner;
	struct dp_request request;
	const struct dp_extent *extent; /* from world_freeze() on */
	size_t nextents;
};

/* Everything is free except the module itself. */
void world_init(struct world *w, const struct helper_module *m);
void world_fini(struct world *w);
/* Ends the addition of probes, and takes the extents. */
void world_freeze(struct world *w);
/* The bytes that will be at `addr`, or NULL. */
const uint8_t *world_placed(const struct world *w, uint64_t addr, size_t *n);
/* The target of the jump at `addr`, which has these bytes. Fails the test if there is no jump. */
uint64_t world_follow(const uint8_t *bytes, size_t n, uint64_t addr);
uint64_t world_follow_placed(const struct world *w, uint64_t addr);

#endif

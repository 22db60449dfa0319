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

/* Everything is free but the module itself. */
void world_init(struct world *w, const struct helper_module *m);
void world_fini(struct world *w);
/* No more probes will be added: takes the extents. */
void world_freeze(struct world *w);
/* The bytes that will be at `addr`; NULL if nothing will. */
const uint8_t *world_placed(const struct world *w, uint64_t addr, size_t *n);
/* Where the jump at `addr`, with these bytes, leads. Fails the test if there is none. */
uint64_t world_follow(const uint8_t *bytes, size_t n, uint64_t addr);
uint64_t world_follow_placed(const struct world *w, uint64_t addr);

#endif

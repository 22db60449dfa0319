/* SPDX-License-Identifier: MIT */
/* What one tool mapped into a process, as another tool finds it. */
#ifndef DP_INJECTOR_TARGET_GROUP_GROUP_H
#define DP_INJECTOR_TARGET_GROUP_GROUP_H

#include "injector/target/target.h"

struct dp_shadow;

/* A group: everything that one tool mapped into the process, from one memfd. */
struct dp_resident {
	struct dp_target *target;
	uint64_t inode;
	struct dp_installation in;
	size_t *site_of; /* index into in.placed of each probe, or SIZE_MAX */
	struct dp_control control; /* as found and checked; magic 0 if there is none */
	uint64_t data, data_size;  /* the data region in the target */
	char *manifest;
	int64_t fd; /* the memfd in the target, which a tool leaves open if killed while mapping; or -1 */
	bool unmapped;
	struct dp_shadow *shadow; /* while this tool serves it */
};

#endif

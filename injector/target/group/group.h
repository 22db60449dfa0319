/* SPDX-License-Identifier: MIT */
/* What one tool has mapped into the process, as another finds it. */
#ifndef DP_INJECTOR_GROUP_H
#define DP_INJECTOR_GROUP_H

#include "injector/target/target.h"

struct dp_shadow;

/* A group: what one tool mapped into the process, all of one memfd. */
struct dp_resident {
	struct dp_target *target;
	uint64_t inode;
	struct dp_installation in;
	size_t *site_of; /* of each probe, in in.placed; or SIZE_MAX */
	struct dp_control control; /* as it was found, and checked; without its magic if there is none */
	uint64_t data, data_size;  /* the data region in the target */
	char *manifest;
	int64_t fd; /* the target's descriptor of the memfd, which a tool killed in the middle leaves open; or -1 */
	bool unmapped;
	struct dp_shadow *shadow; /* while this tool serves it */
};

#endif

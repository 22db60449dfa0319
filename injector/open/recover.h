/* SPDX-License-Identifier: MIT */
/* What earlier tools left in a process, when it is opened. */
#ifndef DP_INJECTOR_OPEN_RECOVER_H
#define DP_INJECTOR_OPEN_RECOVER_H

#include "injector/target/target.h"

/* Takes the lock that excludes other dynprobes from open to close, or fails with DP_TAG_LOCKED. */
struct dp_error *dp_lock(struct dp_target *t) DP_MUST_CHECK;
/*
 * DP_TAG_LOCKED if a living dynprobe serves the process. Removes what a dead one left, or what a fork inherited from its parent.
 */
struct dp_error *dp_recover(struct dp_target *t) DP_MUST_CHECK;

#endif

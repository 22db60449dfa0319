/* SPDX-License-Identifier: MIT */
/* Events of a probe that were not recorded. */
#ifndef DP_INJECTOR_LOSS_H
#define DP_INJECTOR_LOSS_H

#include <stdint.h>

struct dp_loss { /* by cause, since install */
	uint64_t full, no_slot, forked, abandoned, damaged, other;
	uint64_t nested, unprimed, no_stack, overwritten, unreadable;
};

#endif

/* SPDX-License-Identifier: MIT */
/* Events of a probe that were not recorded. */
#ifndef DP_INJECTOR_RING_LOSS_H
#define DP_INJECTOR_RING_LOSS_H

#include <stdint.h>

struct dp_loss { /* by cause, since install */
	uint64_t full, no_slot, forked, abandoned, damaged, other;
	uint64_t nested, unprimed, no_stack, overwritten, unreadable, unwanted;
};

static inline uint64_t dp_loss_sum(const struct dp_loss *l)
{
	return l->full + l->no_slot + l->forked + l->abandoned + l->damaged + l->other + l->nested + l->unprimed + l->no_stack +
	       l->overwritten + l->unreadable + l->unwanted;
}

#endif

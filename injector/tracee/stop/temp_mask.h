/* SPDX-License-Identifier: MIT */
/* The mask of a held thread, set and given back, also where it waits with a mask of the moment (temp_mask.c). Private to
 * injector/.
 */
#ifndef DP_INJECTOR_MOMENT_H
#define DP_INJECTOR_MOMENT_H

#include "injector/tracee/tracee.h"

struct dp_temp_mask {
	uint64_t own;       /* the thread's own mask */
	uint64_t mask;      /* the one that its call waits with */
	uint64_t held_back; /* signals that the call holds back and the thread itself does not */
};

/* Is it stopped in a call that was given a mask of the moment? */
bool dp_temp_mask_waits(const struct dp_held *h);
/* Before the mask of a stopped thread is set. False if the thread has died. */
bool dp_temp_mask_take(const struct dp_process *p, const struct dp_held *h, struct dp_temp_mask *ret);
/*
 * Sets the thread's own mask, `m->own`, and, where its call may not go on from where it stands, changes `h->regs` so that it
 * begins anew; the caller writes them back. False if the thread has died.
 */
bool dp_temp_mask_give_back(const struct dp_process *p, struct dp_held *h, const struct dp_temp_mask *m);

#endif

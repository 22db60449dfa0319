/* SPDX-License-Identifier: MIT */
/* Sets and restores a stopped thread's signal mask, also in a call with a temporary one (temp_mask.c). Private to injector/. */
#ifndef DP_INJECTOR_TRACEE_STOP_TEMP_MASK_H
#define DP_INJECTOR_TRACEE_STOP_TEMP_MASK_H

#include "injector/tracee/tracee.h"

struct dp_temp_mask {
	uint64_t own;       /* the thread's own mask */
	uint64_t mask;      /* the mask its call waits with */
	uint64_t held_back; /* signals blocked by the call but not by the thread */
};

/* Is it stopped in a call with a temporary mask? */
bool dp_temp_mask_waits(const struct dp_held *h);
/* Reads the masks; call it before setting the mask of a stopped thread. False if the thread has died. */
bool dp_temp_mask_take(const struct dp_process *p, const struct dp_held *h, struct dp_temp_mask *ret);
/*
 * Sets the thread's own mask, `m->own`. If its call must not resume where it is, changes `h->regs` so that the call starts again;
 * the caller writes the registers back. False if the thread has died.
 */
bool dp_temp_mask_give_back(const struct dp_process *p, struct dp_held *h, const struct dp_temp_mask *m);

#endif

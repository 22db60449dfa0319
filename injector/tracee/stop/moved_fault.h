/* SPDX-License-Identifier: MIT */
/* Moving a thread while the signal of a fault at its pc is pending. */
#ifndef DP_INJECTOR_MOVED_FAULT_H
#define DP_INJECTOR_MOVED_FAULT_H

#include "injector/tracee/tracee.h"

/* Is the signal of a fault at its pc still queued? Then its pc must not change. */
bool dp_fault_waits(const struct dp_held *h);
/*
 * Call it before the pc becomes `to`: if the thread is about to receive the signal of a fault at its pc, si_addr becomes `to`
 * too.
 */
void dp_fault_move(const struct dp_held *h, uint64_t to);

#endif

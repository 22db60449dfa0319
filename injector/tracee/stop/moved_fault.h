/* SPDX-License-Identifier: MIT */
/* Moving a thread while the signal of a fault at its pc is pending. */
#ifndef DP_INJECTOR_TRACEE_STOP_MOVED_FAULT_H
#define DP_INJECTOR_TRACEE_STOP_MOVED_FAULT_H

#include "injector/tracee/tracee.h"

/* Is the signal of a fault at its pc still queued? Then its pc must not change. */
bool dp_fault_waits(const struct dp_held *h);
/* Call it before the pc becomes `to`: adapts si_addr of the fault signal about to be delivered, if it equals the pc. */
void dp_fault_move(const struct dp_held *h, uint64_t to);

#endif

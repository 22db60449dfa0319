/* SPDX-License-Identifier: MIT */
/* A thread that is moved while the signal of a fault at its pc is on its way. */
#ifndef DP_INJECTOR_MOVED_FAULT_H
#define DP_INJECTOR_MOVED_FAULT_H

#include "injector/tracee/tracee.h"

/* Is the signal of a fault at its pc yet to be taken from its queue? Then its pc has to stay. */
bool dp_fault_waits(const struct dp_held *h);
/* Before its pc becomes `to`: the signal that it is about to get, of a fault at its pc, says `to` as well. */
void dp_fault_move(const struct dp_held *h, uint64_t to);

#endif

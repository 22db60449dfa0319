/* SPDX-License-Identifier: MIT */
/* Ready-made modules that cost little: run without being asked for, on a snapshot that was taken before. */
#ifndef DP_PMODULES_LOAD_READY_H
#define DP_PMODULES_LOAD_READY_H

#include "pmodules/model/snapshot.h"

/*
 * If several threads wait for locks and nobody has looked for a cycle yet, `deadlock` does. It sees the pages that the snapshot
 * kept, and has a module's budget of time. Whatever goes wrong in it leaves the snapshot without its results.
 */
void dp_ready_run(struct dp_snapshot *s);

#endif

/* SPDX-License-Identifier: MIT */
/* Hand-made snapshots: every member of the model has a value of its own, so that a lost or exchanged one is noticed. */
#ifndef DP_TESTS_PMODULES_HELPER_SNAPSHOT_H
#define DP_TESTS_PMODULES_HELPER_SNAPSHOT_H

#include "pmodules/model/snapshot.h"

/* As golden-1.dps has it. Members that come later are set by helper_full() on top. */
struct dp_snapshot *helper_version1(void);
struct dp_snapshot *helper_full(void);
/* Asserts that nothing differs (but the id's memory). */
void helper_same(const struct dp_snapshot *a, const struct dp_snapshot *b);

#endif

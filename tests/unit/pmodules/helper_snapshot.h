/* SPDX-License-Identifier: MIT */
/* Hand-made snapshots: every member of the model has a different value, so that a lost or exchanged one is noticed. */
#ifndef DP_TESTS_PMODULES_HELPER_SNAPSHOT_H
#define DP_TESTS_PMODULES_HELPER_SNAPSHOT_H

#include "pmodules/model/snapshot.h"

/* The snapshot in golden-1.dps. helper_full() sets newer members on top of it. */
struct dp_snapshot *helper_version1(void);
struct dp_snapshot *helper_full(void);
/* Asserts that nothing differs (except the id's address). */
void helper_same(const struct dp_snapshot *a, const struct dp_snapshot *b);

#endif

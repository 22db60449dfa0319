/* SPDX-License-Identifier: MIT */
#ifndef DP_INJECTOR_PATCH_REMOVE_COPIES_H
#define DP_INJECTOR_PATCH_REMOVE_COPIES_H

#include "injector/target/target.h"

/*
 * Writing made private copies of text pages. Those that equal the file again are given back (decision 9). If that is not
 * possible, nothing is lost.
 */
void dp_remove_copies(struct dp_target *t, const struct dp_installation *in, struct dp_remove_report *report);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef DP_INJECTOR_REMOVE_COPIES_H
#define DP_INJECTOR_REMOVE_COPIES_H

#include "injector/target/target.h"

/*
 * Writing made private copies of pages of text; those that equal the file again are given back (decision 9). Nothing is lost
 * where that cannot be done.
 */
void dp_remove_copies(struct dp_target *t, const struct dp_installation *in, struct dp_remove_report *report);

#endif

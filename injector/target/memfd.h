/* SPDX-License-Identifier: MIT */
#ifndef DP_INJECTOR_TARGET_MEMFD_H
#define DP_INJECTOR_TARGET_MEMFD_H

#include "injector/target/target.h"

/*
 * Calls memfd_create() on a borrowed thread; the file can be mapped executable. `room`: as for dp_remote_script(). `name`:
 * address of the file name in the target's memory. `o`: what is called before and behind it; the rest is set here.
 */
struct dp_error *dp_remote_memfd(struct dp_borrow *b, uint64_t room, uint64_t name, struct dp_opening *o,
                                 int64_t *fd) DP_MUST_CHECK;

#endif

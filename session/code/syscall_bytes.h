/* SPDX-License-Identifier: MIT */
/* Finds where a module's code may enter the kernel. */
#ifndef DP_SESSION_CODE_SYSCALL_BYTES_H
#define DP_SESSION_CODE_SYSCALL_BYTES_H

#include "probes/image/module.h"

/* Called for one address; an error ends the search. */
typedef struct dp_error *(*dp_syscall_bytes_fn)(struct dp_module *m, uint64_t addr, void *data);
/* Calls `each` for every `0f 05` (syscall) in executable segments, also inside of other instructions; returns its first error. */
struct dp_error *dp_syscall_bytes(struct dp_module *m, dp_syscall_bytes_fn each, void *data) DP_MUST_CHECK;

#endif

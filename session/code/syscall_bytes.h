/* SPDX-License-Identifier: MIT */
/* Where a module's code may enter the kernel. */
#ifndef DP_SESSION_CODE_SYSCALL_BYTES_H
#define DP_SESSION_CODE_SYSCALL_BYTES_H

#include "probes/image/module.h"

/* Asked about one place; an error ends the search. */
typedef struct dp_error *(*dp_syscall_bytes_fn)(struct dp_module *m, uint64_t addr, void *data);
/* Every place of the module's code where the two bytes of a syscall stand, also inside of other instructions; the first error. */
struct dp_error *dp_syscall_bytes(struct dp_module *m, dp_syscall_bytes_fn look, void *data) DP_MUST_CHECK;

#endif

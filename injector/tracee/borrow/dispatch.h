/* SPDX-License-Identifier: MIT */
/* Threads whose system calls go to a handler of the program. Private to the ptrace half of injector/; see dispatch.c. */
#ifndef DP_INJECTOR_TRACEE_BORROW_DISPATCH_H
#define DP_INJECTOR_TRACEE_BORROW_DISPATCH_H

#include "injector/tracee/tracee.h"

enum dp_dispatch {
	DP_DISPATCH_NONE,   /* all its calls are made; also on kernels that do not tell */
	DP_DISPATCH_OPEN,   /* calls are dispatched, but not now: the program's selector allows them */
	DP_DISPATCH_INSIDE, /* only calls from the range *start, *size are made */
	DP_DISPATCH_ALL,    /* no call is made */
};
/* The state of a stopped thread. `start` and `size` may be NULL. */
enum dp_dispatch dp_dispatch_of(const struct dp_process *p, pid_t tid, uint64_t *start, uint64_t *size);
/* Can the program have its calls dispatched at all? It handles SIGSYS then. */
bool dp_dispatch_possible(const struct dp_process *p, pid_t tid);
/* The signals to block in a borrowed thread: all, but if the kernel does not tell of dispatch, not SIGSYS, which does. */
uint64_t dp_dispatch_mask(const struct dp_process *p, pid_t tid);
struct dp_error *dp_dispatch_refused(const struct dp_process *p, pid_t tid) DP_MUST_CHECK;

#endif

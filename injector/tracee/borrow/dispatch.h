/* SPDX-License-Identifier: MIT */
/* Threads whose system calls go to a handler of the program's. Private to the ptrace half of injector/; see dispatch.c. */
#ifndef DP_INJECTOR_DISPATCH_H
#define DP_INJECTOR_DISPATCH_H

#include "injector/tracee/tracee.h"

enum dp_dispatch {
	DP_DISPATCH_NONE,   /* its calls are made, wherever they come from, and so is everything on a kernel that does not say */
	DP_DISPATCH_OPEN,   /* they are dispatched, but not now: the program's switch is open */
	DP_DISPATCH_INSIDE, /* only those from one range of addresses are made, which *start and *size tell */
	DP_DISPATCH_ALL,    /* none is */
};
/* Of a thread that stands. `start` and `size` may be NULL. */
enum dp_dispatch dp_dispatch_of(const struct dp_process *p, pid_t tid, uint64_t *start, uint64_t *size);
/* Which signals to block while such a thread works for us: all; but where the kernel does not say, not the one that would tell. */
uint64_t dp_dispatch_mask(const struct dp_process *p, pid_t tid);
struct dp_error *dp_dispatch_refused(const struct dp_process *p, pid_t tid) DP_MUST_CHECK;

#endif

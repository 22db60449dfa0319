/* SPDX-License-Identifier: MIT */
/* Runs one C function on a borrowed thread. Private to injector/; see call.c. */
#ifndef DP_INJECTOR_TRACEE_BORROW_CALL_H
#define DP_INJECTOR_TRACEE_BORROW_CALL_H

#include "injector/tracee/tracee.h"

struct dp_call_site { /* addresses in the target, see agent/call.h */
	uint64_t entry, frame, stack;
	uint64_t errno_location;
	uint32_t waits; /* of 2 ms each, for the tool after the function has returned; 0: a few */
};

/*
 * Runs `fn` on `h`, which only we hold, at a place where it holds no lock that `fn` needs; afterwards `h` is held again, with
 * everything as it was. Other threads run meanwhile. If the function has not returned after limit_ns, the thread is released
 * (h->exited is set) and restores itself later; do not use the site again before dp_call_over() is true.
 */
struct dp_error *dp_call(const struct dp_process *p, struct dp_held *h, const struct dp_call_site *site, uint64_t fn,
                         const uint64_t args[4], uint64_t limit_ns, uint64_t *result) DP_MUST_CHECK;
/* Has the last call on this site, by any tool, certainly ended? If not, `tid` is its thread. */
bool dp_call_over(const struct dp_process *p, const struct dp_call_site *site, pid_t *tid);

#endif

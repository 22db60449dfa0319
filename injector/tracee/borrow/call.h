/* SPDX-License-Identifier: MIT */
/* One C function run on a borrowed thread. Private to injector/; see call.c. */
#ifndef DP_INJECTOR_CALL_H
#define DP_INJECTOR_CALL_H

#include "injector/tracee/tracee.h"

struct dp_call_site { /* addresses in the target, see agent/call.h */
	uint64_t entry, frame, stack;
	uint64_t errno_location;
};

/*
 * Runs `fn` on `h`, which is held by us alone at a place where it holds no lock that `fn` needs, and holds it again afterwards,
 * with everything as it was. Other threads run meanwhile. If the function has not returned after limit_ns, the thread is let go
 * (h->exited is set) and comes home by itself, and the site must not be used again before dp_call_over().
 */
struct dp_error *dp_call(const struct dp_process *p, struct dp_held *h, const struct dp_call_site *site, uint64_t fn,
                         const uint64_t args[4], uint64_t limit_ns, uint64_t *result) DP_MUST_CHECK;
/* Has the last call on this site, by whatever tool, certainly ended? `tid` names the thread otherwise. */
bool dp_call_over(const struct dp_process *p, const struct dp_call_site *site, pid_t *tid);

#endif

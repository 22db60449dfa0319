/* SPDX-License-Identifier: MIT */
/*
 * Modules that are loaded while probes are installed. A hook in the function by which the target's loader tells debuggers of its
 * modules calls the agent, which wakes this tool and waits for it, for a bounded time (agent/loaded.c). The tool installs pending
 * probes next to the existing ones: as a second target of the same process, with a mapping, an agent and rings of its own.
 */
#ifndef DP_INJECTOR_LOADS_H
#define DP_INJECTOR_LOADS_H

#include "injector/injector.h"

/* Can the loader's notifications be hooked? DP_TAG_PENDING: static, not glibc's loader, under a seccomp filter. */
struct dp_error *dp_loads_check(struct dp_target *t) DP_MUST_CHECK;
/* After prepare: the address for the hook's request (struct dp_request). */
uint64_t dp_loads_hook(const struct dp_target *t);

/* After install: from now on, do threads that load modules wait for answers? */
void dp_loads_serve(struct dp_target *t, bool on);
/* Has the loader sent an unanswered notification? Waits up to `ms` for one. */
bool dp_loads_wait(struct dp_target *t, int ms);
/* A thread waits, holding the loader's lock: raises our priority until dp_loads_answer(), if the kernel allows it. */
void dp_loads_hurry(struct dp_target *t);
/* Answers the notifications seen by dp_loads_wait(): releases their threads. */
void dp_loads_answer(struct dp_target *t);
/* How often a thread resumed without an answer. */
uint32_t dp_loads_late(const struct dp_target *t);

/*
 * Opens a second target of the same process, to install next to `first`, which must be closed later and has been released. It has
 * the current image.
 */
struct dp_error *dp_target_open_beside(struct dp_target *first, struct dp_target **ret) DP_MUST_CHECK;

/*
 * Is the code at `addr` of t's image still mapped from the same place of the same file in `now`? Compares only the two images:
 * the file may have been unmapped and mapped again.
 */
bool dp_loads_still_there(struct dp_target *t, const struct dp_image *now, uint64_t addr);
/* Does the text still have the file's own bytes where plan `plan` of the installation was written? */
bool dp_loads_fresh(struct dp_target *t, size_t plan);

#endif

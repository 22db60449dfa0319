/* SPDX-License-Identifier: MIT */
/*
 * Modules that come and go while probes stand. A hook where the target's loader tells debuggers of its modules leads to the
 * agent, which wakes this tool and waits for it, with a bound (agent/loaded.c). The tool installs what was waiting beside what
 * stands: as a second target of the same process, with a mapping, an agent and rings of its own.
 */
#ifndef DP_INJECTOR_LOADS_H
#define DP_INJECTOR_LOADS_H

#include "injector/injector.h"

/* Can the loader's news be had at all? DP_TAG_PENDING: static, not glibc's loader, under a seccomp filter. */
struct dp_error *dp_loads_check(struct dp_target *t) DP_MUST_CHECK;
/* After prepare: where a request for the hook leads (struct dp_request). */
uint64_t dp_loads_hook(const struct dp_target *t);

/* After install: threads that load wait for answers from now on, or do not any more. */
void dp_loads_serve(struct dp_target *t, bool on);
/* Has the loader said anything that was not answered yet? Waits for it up to `ms`. */
bool dp_loads_wait(struct dp_target *t, int ms);
/* A thread waits, with the loader's lock: this one goes first until dp_loads_answer(), where the kernel allows it. */
void dp_loads_hurry(struct dp_target *t);
/* What was said until the call of dp_loads_wait() is dealt with: lets its threads go on. */
void dp_loads_answer(struct dp_target *t);
/* How often a thread went on unanswered. */
uint32_t dp_loads_late(const struct dp_target *t);

/*
 * A second target of the same process, to install into beside `first`, which must stay open longer and has been released. It has
 * the image of now.
 */
struct dp_error *dp_target_open_beside(struct dp_target *first, struct dp_target **ret) DP_MUST_CHECK;

/*
 * Is the code at `addr` of t's image still mapped from the same place of the same file in `now`? Looks at nothing but the two
 * images: the same file may have gone and come again.
 */
bool dp_loads_still_there(struct dp_target *t, const struct dp_image *now, uint64_t addr);
/* Does the text have the file's own bytes where plan `plan` of the installation was written? */
bool dp_loads_fresh(struct dp_target *t, size_t plan);

#endif

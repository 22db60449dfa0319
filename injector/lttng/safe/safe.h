/* SPDX-License-Identifier: MIT */
/*
 * Safe points: where a thread of the program can call a C function for us (docs/decisions/0011). Private to injector/. Needs a
 * current image of the target; all analysis is done before a thread is stopped.
 */
#ifndef DP_INJECTOR_LTTNG_SAFE_SAFE_H
#define DP_INJECTOR_LTTNG_SAFE_SAFE_H

#include "injector/tracee/tracee.h"
#include "probes/probes.h"

struct dp_safe; /* opaque */

/* `own`, `own_size`: the sink's text, or 0. */
struct dp_error *dp_safe_create(struct dp_image *image, uint64_t own, uint64_t own_size, struct dp_safe **ret) DP_MUST_CHECK;
struct dp_safe *dp_safe_destroy(struct dp_safe *s);

/* Does the thread have a glibc control block of its own? A raw clone can share its parent's. */
bool dp_safe_own_block(const struct dp_process *p, const struct dp_held *h);
/* May this held thread run malloc, pthread_create and similar functions? If not, `why` says why. */
bool dp_safe_here(struct dp_safe *s, const struct dp_process *p, const struct dp_held *h, char why[128]);

enum dp_safe_rank { DP_SAFE_BEST, DP_SAFE_RUNNING, DP_SAFE_TIMED, DP_SAFE_ODD, DP_SAFE_NEVER };
/*
 * Rates a thread without stopping it. The best ones are blocked in a call that can last and that a stop does not disturb.
 * DP_SAFE_ODD: it has a scheduling policy or affinity unlike the others, which a new thread would inherit.
 */
enum dp_safe_rank dp_safe_rank(struct dp_safe *s, const struct dp_process *p, pid_t tid);

enum dp_safe_outcome { DP_SAFE_HELD, DP_SAFE_UNSAFE, DP_SAFE_GONE, DP_SAFE_STOPPED_JOB };
/*
 * Stops one thread and inspects it. The thread stays stopped only with DP_SAFE_HELD. Without `s` any place will do. A thread that
 * ends meanwhile, or cannot stop now, is no error.
 */
struct dp_error *dp_safe_take(struct dp_safe *s, const struct dp_process *p, pid_t tid, struct dp_held *ret,
                              enum dp_safe_outcome *outcome, char why[128]) DP_MUST_CHECK;

#endif

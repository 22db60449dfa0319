/* SPDX-License-Identifier: MIT */
/* Judges a stack frame by frame instead of word by word. Private to safe*.c. */
#ifndef DP_INJECTOR_LTTNG_SAFE_SAFE_UNWIND_H
#define DP_INJECTOR_LTTNG_SAFE_SAFE_UNWIND_H

#include "injector/lttng/safe/safe_ranges.h"
#include "injector/tracee/tracee.h"

struct dp_unwinder; /* opaque */
/* Opens the tables of all code in `ranges`. NULL if out of memory. */
struct dp_unwinder *dp_unwinder_create(const struct dp_ranges *ranges);
void dp_unwinder_destroy(struct dp_unwinder *u);

/* Code without tables where stacks of our own threads begin (the sink's loader): frames that reach it are complete. */
void dp_unwinder_begins_at(struct dp_unwinder *u, uint64_t start, uint64_t end);

enum dp_unwound { DP_UNWOUND_SAFE, DP_UNWOUND_UNSAFE, DP_UNWOUND_UNKNOWN };
/* DP_UNWOUND_UNKNOWN: the frames could not be followed to the base of the stack by tables alone, or `u` is NULL. Opens no file.
 */
enum dp_unwound dp_unwinder_judge(struct dp_unwinder *u, const struct dp_held *h, char why[128]);
/* Did the last judged thread have a signal handler's frame? */
bool dp_unwinder_met_signal(const struct dp_unwinder *u);

#endif

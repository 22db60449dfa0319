/* SPDX-License-Identifier: MIT */
/*
 * Semaphores of USDT markers: 16-bit counters in the program's data, of how many tracers want a marker's arguments. A probe at a
 * marker's nop owns one count while its site is installed. The owner is recorded nowhere: whoever removes the site, this tool or
 * a later one, finds the marker by the site's address and takes the count back.
 *
 * The count is raised before the site is written, and lowered after it is restored. A tool that is killed in between leaves one
 * count too many: the program then prepares arguments that no tracer reads. It never leaves one too few, which would take another
 * tracer's count. Like uprobes, this reads, adds and writes: two tracers that count at the same instant may lose a count.
 */
#ifndef DP_INJECTOR_PATCH_SEMAPHORES_H
#define DP_INJECTOR_PATCH_SEMAPHORES_H

#include "injector/injector.h"
#include "injector/target/target.h"

/* Before `plans` are installed. */
void dp_semaphores_raise(struct dp_target *t, const struct dp_plan *plans, size_t n);
/* After that, whatever the result: takes back the counts of plans that are not installed. */
void dp_semaphores_settle(struct dp_target *t, const struct dp_plan *plans, size_t n);

/* For a site that is given up, which is not removed later. */
void dp_semaphores_lower(struct dp_target *t, const struct dp_placed *p);

/* Around a removal: records which sites are installed, then lowers the counts of those that no longer are. */
struct dp_semaphores; /* may be NULL */
struct dp_semaphores *dp_semaphores_before(struct dp_target *t, const struct dp_installation *in);
void dp_semaphores_after(struct dp_target *t, const struct dp_installation *in, struct dp_semaphores *before);

#endif

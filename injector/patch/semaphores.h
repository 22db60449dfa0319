/* SPDX-License-Identifier: MIT */
/*
 * Semaphores of USDT markers: 16-bit counters in the program's data of how many tracers want a marker's arguments. A probe at a
 * marker's nop holds one count for as long as its site stands. Whose count it is need not be noted anywhere: who takes the site
 * out, this tool or one that tidies up behind it, finds the marker by the site's address and takes the count back.
 *
 * Counted up before the site is written and down after it is restored: a tool that is killed in between leaves a count too many,
 * which costs the program the making of arguments that nobody reads; never one too few, which would take another tracer's. As
 * uprobes do, this reads, adds and writes: two tracers that count at the same instant may lose a count.
 */
#ifndef DP_INJECTOR_SEMAPHORES_H
#define DP_INJECTOR_SEMAPHORES_H

#include "injector/injector.h"
#include "injector/target/target.h"

/* Before `plans` are installed. */
void dp_semaphores_raise(struct dp_target *t, const struct dp_plan *plans, size_t n);
/* After it, whatever came of it: takes back the counts of those that do not stand. */
void dp_semaphores_settle(struct dp_target *t, const struct dp_plan *plans, size_t n);

/* A site that is given up: nobody takes it out later. */
void dp_semaphores_lower(struct dp_target *t, const struct dp_placed *p);

/* Around the removal of sites: which stand before, and then the counts of those that stand no more. */
struct dp_semaphores; /* may be NULL */
struct dp_semaphores *dp_semaphores_before(struct dp_target *t, const struct dp_installation *in);
void dp_semaphores_after(struct dp_target *t, const struct dp_installation *in, struct dp_semaphores *before);

#endif

/* SPDX-License-Identifier: MIT */
/* Probes in forked children of the test: three functions of the test's own, whose results the child checks all the time. */
#ifndef DP_TESTS_HELPER_PROBE_H
#define DP_TESTS_HELPER_PROBE_H

#include "helper_tracee.h"

#include "injector/target/target.h"

/* The first instruction of foo and bar holds a jump; baz begins with a short one, so that its jump covers two. */
extern int pr_foo(int);
extern int pr_bar(int);
extern int pr_baz(int);
#define PR_FOO 0u
#define PR_BAR 1u
#define PR_BAZ 2u
uint64_t pr_addr(unsigned which);
/* Are the function's bytes in the process those of the test's own file? */
bool pr_original(pid_t pid, unsigned which);

/* Calls all for ever; tr->calls counts, tr->failed is wrong results. */
void pr_calling(void);
/* The same in four threads. */
void pr_calling_threads(void);

/* PR_THREADS threads call foo(0), foo(1), ... up to what pr_count_to() asks for; thread k keeps its count in tr->value[k]. */
#define PR_THREADS 4
#define PR_LIMIT   63
void pr_counting(void);
/* Asks for that and waits until all have done so. */
void pr_count_to(long n);
/* No more calls, however many were asked for; returns when no thread is between a call and its count. */
void pr_count_no_more(void);

struct dp_target *pr_open(pid_t pid, const struct dp_target_options *options);
#define PR_GATES (&(const struct dp_target_options){.gates = true, .ring_size = 16384, .nslots = 16})
/*
 * Plans and installs n probes on which[i], probe i with `own` for DP_NO_PROBE (a hook, in which threads stay for
 * as long as tr->value[PR_HOLD] says; PR_HELD: one is there). results[i] says why one
 * was refused.
 */
#define PR_HOLD 61
#define PR_HELD 62
struct pr_ask {
	unsigned which;
	bool own;
};
struct dp_error *pr_install(struct dp_target *t, const struct pr_ask *ask, unsigned n, struct dp_install_result *results);
/* The same, and no refusal. */
void pr_placed(struct dp_target *t, const struct pr_ask *ask, unsigned n);
/* Opens, installs foo and bar (or one of them), keeps, closes. Every probe records rdi. */
void pr_attach(pid_t pid, const char *manifest);
void pr_attach_one(pid_t pid, unsigned which, const char *manifest);

/* Runs `tool` on a fresh child that runs `target`, both as a user without privileges. */
void pr_as_nobody(void (*target)(void), void (*tool)(pid_t));

/* The one kept group that there is; that with this manifest, or NULL. */
struct dp_resident *pr_only(struct dp_target *t);
struct dp_resident *pr_named(struct dp_target *t, const char *manifest);

/* Lines of /proc/PID/maps that are ours. */
size_t pr_mappings(pid_t pid);
/* The number of lines of /proc/PID/maps, and of open descriptors. */
size_t pr_lines(pid_t pid);
size_t pr_descriptors(pid_t pid);
/* Is the probe of a kept group hit? Once its ring is full each hit counts as one that is lost, or that displaces another. */
bool pr_is_hit(struct dp_resident *s, unsigned probe);
/* The child goes on, with right results. */
void pr_goes_on(void);
#endif

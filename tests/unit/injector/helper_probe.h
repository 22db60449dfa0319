/* SPDX-License-Identifier: MIT */
/* Probes in forked children of the test: three functions of the test's own, whose results the child checks all the time. */
#ifndef DP_TESTS_HELPER_PROBE_H
#define DP_TESTS_HELPER_PROBE_H

#include "helper_tracee.h"

#include "injector/target/target.h"

/* The first instruction of foo and bar has room for a jump; that of baz is short, so its jump covers two. */
extern int pr_foo(int);
extern int pr_bar(int);
extern int pr_baz(int);
#define PR_FOO 0u
#define PR_BAR 1u
#define PR_BAZ 2u
uint64_t pr_addr(unsigned which);
/* Does the function in the process have the bytes of the test's own file? */
bool pr_original(pid_t pid, unsigned which);

/* Calls all functions forever; tr->calls counts calls, tr->failed wrong results. */
void pr_calling(void);
/* The same in four threads. */
void pr_calling_threads(void);

/* PR_THREADS threads call foo(0), foo(1), ... up to the limit of pr_count_to(); thread k keeps its count in tr->value[k]. */
#define PR_THREADS 4
#define PR_LIMIT   63
void pr_counting(void);
/* Sets the limit and waits until all threads have reached it. */
void pr_count_to(long n);
/* Stops the calls; returns when no thread is between a call and its count. */
void pr_count_no_more(void);

struct dp_target *pr_open(pid_t pid, const struct dp_target_options *options);
#define PR_GATES (&(const struct dp_target_options){.gates = true, .ring_size = 16384, .nslots = 16})
/*
 * Plans and installs n probes on which[i]. With `own`, probe i is DP_NO_PROBE: a hook, in which threads stay for as long as
 * tr->value[PR_HOLD] says (PR_HELD: one is there). results[i] says why one was refused.
 */
#define PR_HOLD 61
#define PR_HELD 62
struct pr_ask {
	unsigned which;
	bool own;
};
struct dp_error *pr_install(struct dp_target *t, const struct pr_ask *ask, unsigned n, struct dp_install_result *results);
/* The same, and none may be refused. */
void pr_placed(struct dp_target *t, const struct pr_ask *ask, unsigned n);
/* Opens, installs foo and bar (or one of them), keeps the probes, closes. Every probe records rdi. */
void pr_attach(pid_t pid, const char *manifest);
void pr_attach_one(pid_t pid, unsigned which, const char *manifest);

/* Runs `tool` on a new child that runs `target`, both as an unprivileged user. */
void pr_as_nobody(void (*target)(void), void (*tool)(pid_t));

/* The only resident group; the group with this manifest, or NULL. */
struct dp_resident *pr_only(struct dp_target *t);
struct dp_resident *pr_named(struct dp_target *t, const char *manifest);

/* The number of our lines in /proc/PID/maps. */
size_t pr_mappings(pid_t pid);
/* The number of lines of /proc/PID/maps, and of open descriptors. */
size_t pr_lines(pid_t pid);
size_t pr_descriptors(pid_t pid);
/* Is the resident probe hit? Once its ring is full, each hit is counted as lost or overwrites another. */
bool pr_is_hit(struct dp_resident *s, unsigned probe);
/* Asserts that the child continues, with correct results. */
void pr_goes_on(void);
#endif

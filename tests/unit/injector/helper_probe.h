/* SPDX-License-Identifier: MIT */
/* Probes in forked children of the test: two functions of the test's own, whose results the child checks all the time. */
#ifndef DP_TESTS_HELPER_PROBE_H
#define DP_TESTS_HELPER_PROBE_H

#include "helper_tracee.h"

#include "injector/target.h"

/* Their first instruction holds a jump. */
extern int pr_foo(int);
extern int pr_bar(int);
#define PR_FOO 0u
#define PR_BAR 1u
uint64_t pr_addr(unsigned which);
/* Are the function's bytes in the process those of the test's own file? */
bool pr_original(pid_t pid, unsigned which);

/* Calls both for ever; tr->calls counts, tr->failed is wrong results. */
void pr_calling(void);
/* The same in `n` threads (tr->value[63]). */
void pr_calling_threads(void);

struct dp_target *pr_open(pid_t pid, const struct dp_target_options *options);
#define PR_GATES (&(const struct dp_target_options){.gates = true, .ring_size = 16384, .nslots = 16})
/*
 * Plans and installs n probes on which[i], probe i with `own` for DP_NO_PROBE (a hook that does nothing). results[i] says why one
 * was refused.
 */
struct pr_ask {
	unsigned which;
	bool own;
};
struct dp_error *pr_install(struct dp_target *t, const struct pr_ask *ask, unsigned n, struct dp_install_result *results);
/* The same, and no refusal. */
void pr_placed(struct dp_target *t, const struct pr_ask *ask, unsigned n);
/* Opens, installs foo and bar, keeps, closes. */
void pr_attach(pid_t pid, const char *manifest);
void pr_attach_one(pid_t pid, unsigned which, const char *manifest);

/* Lines of /proc/PID/maps that are ours. */
size_t pr_mappings(pid_t pid);
/* The number of lines of /proc/PID/maps, and of open descriptors. */
size_t pr_lines(pid_t pid);
size_t pr_descriptors(pid_t pid);
/* The child goes on, with right results. */
void pr_goes_on(void);
/* Waits until the counter of hits, however they fared, moves: a probe is really hit. */
#endif

/* SPDX-License-Identifier: MIT */
/* --profile HZ: where the threads of a process spend their CPU time, by samples of their stacks. Nothing in the process is
 * touched. */
#ifndef DP_CLI_PROFILE_H
#define DP_CLI_PROFILE_H

#include "cli/outputs.h"

/* Runs it; the exit status. Errors are printed. */
int dp_profile(const struct dp_options *options);
/* What --profile goes with. */
struct dp_error *dp_profile_check(struct dp_options *o) DP_MUST_CHECK;

/* ---- profile_table.c: how often each stack was seen ------------------------------------------------------------------------ */

struct dp_stacks;
struct dp_error *dp_stacks_create(struct dp_stacks **ret) DP_MUST_CHECK;
/* False: there is no room for another stack. */
bool dp_stacks_count(struct dp_stacks *s, const uint64_t *pc, size_t n);
/* As the options say: a table, folded stacks, or JSON. */
struct dp_stacks_view {
	const struct dp_options *options;
	struct dp_image *image;
	pid_t pid;
	double seconds;
};
void dp_stacks_show(const struct dp_stacks *s, const struct dp_stacks_view *v, FILE *to);
struct dp_stacks *dp_stacks_destroy(struct dp_stacks *s);

#endif

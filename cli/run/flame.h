/* SPDX-License-Identifier: MIT */
/* --flame: a picture of folded stacks, with a title that says of which program it is and what was measured. */
#ifndef DP_CLI_RUN_FLAME_H
#define DP_CLI_RUN_FLAME_H

#include "cli/options/options.h"
#include "output/flame/flame.h"

struct dp_flame_about {
	const char *program; /* "redis-server (pid 4242)"; or NULL: the options name it */
	const char *what;    /* "time off the processor"; or NULL: the probes and their aggregation */
	const char *unit;
	const char *empty; /* why there are no stacks */
};
/* Adds a process to such a name. Of several, some names and the number. */
void dp_flame_process(struct dp_buf *b, size_t n, const char *comm, pid_t pid);
/* Could the file be written? Checked before a process is touched. */
struct dp_error *dp_flame_place(const struct dp_options *options) DP_MUST_CHECK;
/* Writes the file of --flame, and says so. */
struct dp_error *dp_flame_save(const struct dp_options *options, struct dp_flame *f,
                               const struct dp_flame_shown *shown) DP_MUST_CHECK;
/* The same from folded lines. */
struct dp_error *dp_flame_folded(const struct dp_options *options, const char *lines, size_t n,
                                 const struct dp_flame_about *about) DP_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/* The options of snapshots. */
#ifndef DP_CLI_OPTIONS_SNAPSHOT_ARGS_H
#define DP_CLI_OPTIONS_SNAPSHOT_ARGS_H

#include "session/trace_spec.h"

struct dp_tid_list {
	pid_t *item;
	size_t n;
};
struct dp_snapshot_args {
	struct dp_snap_capture_options take; /* its lists are filled in by dp_snapshot_args_finish() */
	const char *core;                    /* NULL: of a process */
	uint64_t iterations, interval_ns;
	struct dp_word_list globals, load, classifiers, modules, module_dirs, module_options, lua_allow;
	struct dp_snap_capture_pair *pair;
	size_t npairs;
	struct dp_tid_list threads, faults;
	char **owned; /* words that are parts of arguments */
	size_t nowned;
};
void dp_snapshot_args_finish(struct dp_snapshot_args *a);
void dp_snapshot_args_fini(struct dp_snapshot_args *a);

#endif

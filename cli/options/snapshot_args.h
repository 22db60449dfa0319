/* SPDX-License-Identifier: MIT */
/* What `dynprobe snapshot` was told. */
#ifndef DP_CLI_SNAPSHOT_ARGS_H
#define DP_CLI_SNAPSHOT_ARGS_H

#include "pmodules/pmodules.h"

struct dp_word_list { /* NULL-terminated once there is a word; the words are the command line's */
	const char **item;
	size_t n;
};
struct dp_snapshot_args {
	struct dp_take_options take; /* its lists are filled in by dp_snapshot_args_finish() */
	const char *core;            /* NULL: of a process */
	uint64_t iterations, interval_ns;
	struct dp_word_list globals, load, classifiers, modules, module_dirs, module_options, lua_allow;
	struct dp_take_pair *pair;
	size_t npairs;
	pid_t *thread, *fault;
	size_t nthreads, nfaults;
	char **owned; /* words that were cut out of others */
	size_t nowned;
};
void dp_snapshot_args_finish(struct dp_snapshot_args *a);
void dp_snapshot_args_fini(struct dp_snapshot_args *a);

struct dp_parser;
#define DP_TAKER(name) struct dp_error *dp_snap_##name(struct dp_parser *p, const char *arg)
DP_TAKER(mode);
DP_TAKER(core);
DP_TAKER(global);
DP_TAKER(tls);
DP_TAKER(load);
DP_TAKER(max_pause);
DP_TAKER(max_depth);
DP_TAKER(max_elems);
DP_TAKER(max_string);
DP_TAKER(max_variables);
DP_TAKER(max_frames);
DP_TAKER(max_bytes);
DP_TAKER(application);
DP_TAKER(kv);
DP_TAKER(classifier);
DP_TAKER(thread);
DP_TAKER(fault_thread);
DP_TAKER(module_load);
DP_TAKER(modules_path);
DP_TAKER(module);
DP_TAKER(lua_allow);
DP_TAKER(module_timeout);
DP_TAKER(environ);
DP_TAKER(iterations);
DP_TAKER(interval);
#undef DP_TAKER

#endif

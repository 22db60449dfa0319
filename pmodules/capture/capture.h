/* SPDX-License-Identifier: MIT */
/*
 * Captures a snapshot, from options to the finished tree: prefetch, hold, extraction, pmodules, facts from /proc. The caller
 * writes it to a file (file.h).
 */
#ifndef DP_PMODULES_CAPTURE_CAPTURE_H
#define DP_PMODULES_CAPTURE_CAPTURE_H

#include "pmodules/host/host.h"
#include "pmodules/source/stopped.h"

struct dp_snap_capture_pair {
	const char *key, *value;
};
/* Lists are NULL-terminated, or NULL. Everything must stay valid until dp_snap_capture_destroy(). */
struct dp_snap_capture_options {
	struct dp_stopped_options still;
	struct dp_limits limits;
	bool no_variables, environ, tls;
	const char *const *globals, *const *load; /* as in extract.h */
	const char *application;                  /* NULL: the program's name */
	const struct dp_snap_capture_pair *pairs; /* attributes */
	size_t npairs;
	const char *const *classifiers, *const *tags;
	const pid_t *threads; /* only these; nthreads 0: all */
	size_t nthreads;
	const pid_t *faults; /* threads to examine as if they had faulted */
	size_t nfaults;
	/* pmodules */
	const char *const *modules, *const *module_dirs, *const *module_options, *const *lua_allow;
	bool of_core; /* no process waits for modules: stl runs unasked (decision 0083) */
	uint64_t module_timeout_ns;
	const char *version; /* of dynprobe */
	void (*log)(enum dp_log_level level, const char *module, const char *text, void *data);
	void *data;
};

struct dp_snap_capture; /* opaque */
/* Loads the modules. */
struct dp_error *dp_snap_capture_create(const struct dp_snap_capture_options *options,
                                        struct dp_snap_capture **ret) DP_MUST_CHECK;
struct dp_snap_capture *dp_snap_capture_destroy(struct dp_snap_capture *t); /* unloads them; accepts NULL */
struct dp_host *dp_snap_capture_host(struct dp_snap_capture *t);

/*
 * Does in advance what a snapshot of that process allows, and keeps it for the next dp_snap_capture_process(). For snapshots that
 * a hit triggers: the hit's thread waits for them.
 */
struct dp_error *dp_snap_capture_prefetch(struct dp_snap_capture *t, pid_t pid) DP_MUST_CHECK;
/* One snapshot of a process, or of a core file (`exe` may be NULL). May be called again. */
struct dp_error *dp_snap_capture_process(struct dp_snap_capture *t, pid_t pid, struct dp_snapshot **ret) DP_MUST_CHECK;
struct dp_error *dp_snap_capture_core(struct dp_snap_capture *t, const char *core, const char *exe,
                                      struct dp_snapshot **ret) DP_MUST_CHECK;

/*
 * The default file name, PROGRAM.PID.EPOCH.dps, with the time in ms. Characters of the program's name that do not suit a file name
 * are replaced.
 */
void dp_snap_capture_name(const struct dp_snapshot *s, char *ret, size_t size);

#endif

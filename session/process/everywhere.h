/* SPDX-License-Identifier: MIT */
/*
 * --all, pid*: which processes of the machine may have a place for one of the run's probes, judged by their mappings. Each is
 * found once; a look costs little for those that have not changed.
 */
#ifndef DP_SESSION_PROCESS_EVERYWHERE_H
#define DP_SESSION_PROCESS_EVERYWHERE_H

#include "session/trace_spec.h"

struct dp_everywhere; /* opaque */
struct dp_error *dp_everywhere_create(const struct dp_trace_spec *trace, struct dp_everywhere **ret) DP_MUST_CHECK;
struct dp_everywhere *dp_everywhere_destroy(struct dp_everywhere *e);
/* Has one of the probes no module that is a file, so that any program may have it? */
bool dp_everywhere_is_any(const struct dp_everywhere *e);
/*
 * Looks at all processes, and lists those that were not found before. With `fresh` it leaves out those that have memory of a
 * dynprobe: fork children of processes of this run, and processes of another. *pid is valid until the next call.
 */
struct dp_error *dp_everywhere_look(struct dp_everywhere *e, bool fresh, const pid_t **pid, size_t *n) DP_MUST_CHECK;
/* Is it time for that? After dp_everywhere_hurry() in each round, for a while. */
bool dp_everywhere_is_due(const struct dp_everywhere *e);
void dp_everywhere_hurry(struct dp_everywhere *e);
/* The process is dealt with, or, if it executes another program, is a new one. */
void dp_everywhere_know(struct dp_everywhere *e, pid_t pid);
void dp_everywhere_forget(struct dp_everywhere *e, pid_t pid);
/* Files of the modules: those found so far, and those of these names where libraries usually are. Owned by `e`, which adds more.
 */
const char *const *dp_everywhere_files(const struct dp_everywhere *e, size_t *n);
/* How many processes this user may not look at. */
unsigned dp_everywhere_denied(const struct dp_everywhere *e);

#endif

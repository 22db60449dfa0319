/* SPDX-License-Identifier: MIT */
/* What the files that take a snapshot share. */
#ifndef DP_PMODULES_TAKE_INTERNAL_H
#define DP_PMODULES_TAKE_INTERNAL_H

#include "pmodules/capture/extract.h"
#include "pmodules/capture/take.h"

struct dp_core;

/* One snapshot on its way. */
struct taking {
	struct dp_take *take;
	struct dp_stopped *still;
	struct dp_world *world; /* reads through `still`: it lasts as long as this */
	struct dp_extract *extract;
	struct dp_snapshot *s;
};
/* take_keep.c */
struct taking *dp_taking_create(struct dp_take *t);
struct taking *dp_taking_destroy(struct taking *k); /* accepts NULL, returns NULL */
/* The process as it is now: with what was kept, if that fits, else anew. `kept` (or NULL) is used up in any case. */
struct dp_error *dp_taking_begin(struct dp_take *t, struct taking *kept, pid_t pid, const struct dp_stopped_options *options,
                                 struct taking **ret) DP_MUST_CHECK;
/* The snapshot, which is the caller's; the rest is kept for the next, in place of what is kept already, or destroyed. */
struct dp_snapshot *dp_taking_finish(struct taking *k, struct taking **kept);

/* take_thread.c: what was known of a thread when it stood: name, state, registers, system call, kernel stack. */
void dp_take_thread_facts(struct dp_snapshot *s, const struct dp_stopped_thread *t, struct dp_snap_thread *into);
/* Says which of `tid` the process did not have. */
void dp_take_missing(struct dp_snapshot *s, const struct dp_stopped *still, const pid_t *tid, size_t n);

/* take_facts.c: from /proc, of the living process: command line, environment, files, limits. */
void dp_take_facts(struct dp_snapshot *s, pid_t pid, bool with_environ);
/* What a core file lacks. */
void dp_take_core_facts(struct dp_snapshot *s, const struct dp_stopped *still);
/* Of both kinds of source: maps and objects. */
void dp_take_image(struct dp_snapshot *s, struct dp_image *image);

/* take_attributes.c */
void dp_take_machine(struct dp_snapshot *s);               /* hostname, uname, cpu */
void dp_take_statistics(struct dp_snapshot *s, pid_t pid); /* vm, sched, descriptors */

/* take_source.c: lines of the source files that frames stand at, where they can be read. */
void dp_take_sources(struct dp_snapshot *s);

#endif

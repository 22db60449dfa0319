/* SPDX-License-Identifier: MIT */
/* Shared by the files that capture a snapshot. */
#ifndef DP_PMODULES_CAPTURE_CAPTURE_INTERNAL_H
#define DP_PMODULES_CAPTURE_CAPTURE_INTERNAL_H

#include "pmodules/capture/capture.h"
#include "pmodules/capture/extract.h"

struct dp_core;

/* One snapshot in progress. */
struct taking {
	struct dp_snap_capture *take;
	struct dp_stopped *still;
	struct dp_debug_ctx *world; /* reads through `still`, which must outlive it */
	struct dp_extract *extract;
	struct dp_snapshot *s;
};
/* capture_keep.c */
struct taking *dp_taking_create(struct dp_snap_capture *t);
struct taking *dp_taking_destroy(struct taking *k); /* accepts NULL, returns NULL */
/* Starts from `kept` (or NULL) if it still fits the process, else from scratch. Consumes `kept` in any case. */
struct dp_error *dp_taking_begin(struct dp_snap_capture *t, struct taking *kept, pid_t pid,
                                 const struct dp_stopped_options *options, struct taking **ret) DP_MUST_CHECK;
/* Returns the snapshot, which the caller owns. The rest replaces *kept, for the next snapshot, or is destroyed. */
struct dp_snapshot *dp_taking_finish(struct taking *k, struct taking **kept);

/* capture_thread.c: what the extraction of a thread leaves out: the text of its system call, its kernel stack, its signal. */
void dp_snap_capture_thread_facts(struct dp_snapshot *s, const struct dp_stopped_thread *t, struct dp_snap_thread *into);
/* Notes which of `tid` the process does not have. */
void dp_snap_capture_missing(struct dp_snapshot *s, const struct dp_stopped *still, const pid_t *tid, size_t n);

/* capture_facts.c: command line, environment, files, limits of the live process, from /proc. */
/* Whose snapshot it is: modules may ask during the hold. */
void dp_snap_capture_identity(struct dp_snapshot *s, const struct dp_stopped *still);
void dp_snap_capture_facts(struct dp_snapshot *s, pid_t pid, bool with_environ);
/* Notes what a core file lacks. */
void dp_snap_capture_core_facts(struct dp_snapshot *s, const struct dp_stopped *still);
/* For processes and cores: maps and objects. */
void dp_snap_capture_image(struct dp_snapshot *s, struct dp_image *image);

/* capture_attributes.c */
void dp_snap_capture_machine(struct dp_snapshot *s);               /* hostname, uname, cpu */
void dp_snap_capture_statistics(struct dp_snapshot *s, pid_t pid); /* vm, sched, descriptors */

/* capture_source.c: source lines at the frames, where the files can be read. */
void dp_snap_capture_sources(struct dp_snapshot *s);

#endif

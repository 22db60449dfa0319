/* SPDX-License-Identifier: MIT */
/* A child that was stopped by a signal, and its debug context. */
#ifndef HELPER_STOPPED_H
#define HELPER_STOPPED_H

#include "pmodules/capture/extract.h"

struct stopped {
	pid_t pid;
	struct dp_image *image;
	struct dp_debug_ctx *world;
	struct dp_extract *extract;
	struct dp_snapshot *snapshot;
	struct dp_stopped_thread thread;
};
/* Runs `child` (which must not return) traced, until a signal stops it, and extracts its thread. */
struct dp_snap_thread *stopped_run(struct stopped *s, void (*child)(void), const struct dp_extract_options *options);
void stopped_fini(struct stopped *s);
struct dp_snap_frame *stopped_frame(struct dp_snap_thread *t, const char *symbol);
struct dp_snap_variable *stopped_variable(struct dp_snap_variable *list, const char *name);
bool stopped_is_classified(const struct dp_snapshot *s, const char *word);

#endif

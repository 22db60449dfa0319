/* SPDX-License-Identifier: MIT */
/* A small snapshot made by hand, and a host with modules that are functions of the test. */
#ifndef HELPER_MODEL_H
#define HELPER_MODEL_H

#include "pmodules/host/host_state.h"

/*
 * One faulting thread "worker" (tid 7) with the frames inner (faulting, parameter p: struct crash * with a child "*" that has the
 * member n; local i) and outer (local text: a struct), one quiet thread "idle" (tid 9) with the frame wait; the global g of
 * main.c.
 */
struct model {
	struct dp_snapshot *s;
	struct dp_snap_thread *worker, *idle;
	struct dp_snap_frame *inner, *outer, *wait;
	struct dp_snap_variable *p, *star, *n, *i, *text, *g;
};
void model_make(struct model *m);

struct log {
	char text[8192];
	unsigned warnings, errors;
};
struct dp_host *host_with(struct dp_host_options *options, struct log *log);
/* A module whose load() is the test's, and whose callbacks are plain functions as in C. */
struct pmodule *module_add(struct dp_host *h, const char *id, struct dp_error *(*load)(struct pmodule *m));
/* preattach, attach, threads, globals, postattach. */
void run_all(struct dp_host *h, struct dp_snapshot *s);
const char *attribute(const struct dp_snapshot *s, const char *key);
int64_t attribute_int(const struct dp_snapshot *s, const char *key);
bool has_word(const struct dp_snap_word *list, const char *word);
unsigned count_notes(const struct dp_snap_note *list, const char *text);

#endif

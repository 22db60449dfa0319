/* SPDX-License-Identifier: MIT */
/* Shared by the files of `show`. */
#ifndef DP_OUTPUT_SNAPSHOT_SHOW_INTERNAL_H
#define DP_OUTPUT_SNAPSHOT_SHOW_INTERNAL_H

#include "output/format/put.h"
#include "output/snapshot/show.h"

#define DP_SHOW_DIM    "\033[2m"
#define DP_SHOW_NAME   "\033[1;36m"
#define DP_SHOW_BOLD   "\033[1m"
#define DP_SHOW_RED    "\033[31m"
#define DP_SHOW_YELLOW "\033[33m"
#define DP_SHOW_RESET  "\033[0m"

struct dp_shower {
	const struct dp_snapshot *s;
	const struct dp_show_options *o;
	struct dp_buf b;
	FILE *to;
	bool failed;
	bool folded; /* something was left out for brevity */
};

/* Appends text from the target or a file, escaped for terminals. */
void dp_show_put(struct dp_shower *x, const char *text);
/* A system call with its arguments as numbers, with their names: futex(0x7f12, FUTEX_WAIT_PRIVATE, 2, NULL). */
void dp_show_call(struct dp_shower *x, const char *text);
void dp_show_colored(struct dp_shower *x, const char *color, const char *text);
void dp_show_indent(struct dp_shower *x, size_t n);
/* Width of the current line, without colour codes. */
size_t dp_show_column(const struct dp_shower *x, size_t line);
/* The line width to use. */
size_t dp_show_width(const struct dp_shower *x);
/* Writes out the buffer if it is large, or `all`. */
void dp_show_flush(struct dp_shower *x, bool all);
void dp_show_notes(struct dp_shower *x, const struct dp_snap_note *list, size_t indent);

/* show_variable.c: `name = value`, and its members below. `label`: shown instead of its name, or NULL. */
void dp_show_variable(struct dp_shower *x, const struct dp_snap_variable *v, const char *label, size_t indent);
void dp_show_variables(struct dp_shower *x, const struct dp_snap_variable *list, size_t indent);
/* show_thread.c */
void dp_show_threads(struct dp_shower *x);
void dp_show_thread(struct dp_shower *x, const struct dp_snap_thread *t);
void dp_show_frame(struct dp_shower *x, const struct dp_snap_frame *f);
/* show_fold.c: a frame of the C or C++ run-time library; whether frames and variables of these are folded. */
bool dp_show_is_library(const struct dp_snap_frame *f);
bool dp_show_folds(const struct dp_shower *x);
/* How many frames, from this one on, become one line; 0: none. That line. */
size_t dp_show_run(const struct dp_shower *x, const struct dp_snap_frame *f);
void dp_show_put_run(struct dp_shower *x, const struct dp_snap_frame *first, size_t n);
/* True for a value too deep within a variable to be shown with its parts. */
bool dp_show_is_deep(struct dp_shower *x, const struct dp_snap_variable *v);
#define DP_SHOW_ELEMENTS 8u /* of an array that is folded */
/* The innermost frame of the program's own code, or NULL. */
const struct dp_snap_frame *dp_show_own(const struct dp_snap_thread *t);
/* The thread's functions on one line. */
void dp_show_chain(struct dp_shower *x, const struct dp_snap_thread *t);
/* show_verdict.c: the cause and the annotations; whether there is a warning among the notes. */
void dp_show_verdict(struct dp_shower *x);
bool dp_show_is_loud(const struct dp_snap_note *list);
/* show_groups.c: threads with the same stack. */
struct dp_show_group {
	const struct dp_snap_thread *thread; /* the first */
	size_t n, hash, rank;
	const struct dp_snap_thread **member;
};
bool dp_show_group(const struct dp_snapshot *s, struct dp_show_group **ret, size_t *n, const struct dp_snap_thread ***members);
/* show_path.c */
struct dp_error *dp_show_find(const struct dp_snapshot *s, const struct dp_show_options *o, const char *var,
                              const struct dp_snap_variable **ret) DP_MUST_CHECK;
struct dp_error *dp_show_place(const struct dp_snapshot *s, const struct dp_show_options *o, const struct dp_snap_thread **thread,
                               const struct dp_snap_frame **frame) DP_MUST_CHECK;
/* show_tables.c */
void dp_show_registers(struct dp_shower *x, const struct dp_frame_regs *r, size_t indent);
void dp_show_thread_registers(struct dp_shower *x, const struct dp_snap_thread *t);
void dp_show_maps(struct dp_shower *x);
void dp_show_files(struct dp_shower *x);
void dp_show_limits(struct dp_shower *x);

#endif

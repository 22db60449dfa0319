/* SPDX-License-Identifier: MIT */
/* Replacement of one module's text: shared by replace_commit.c and replace_move.c. */
#ifndef DP_INJECTOR_PATCH_REPLACE_REPLACE_JOB_H
#define DP_INJECTOR_PATCH_REPLACE_REPLACE_JOB_H

#include "injector/patch/replace/replace.h"

#define RUNS_MOST 3 /* per module; with more, its text is replaced as a whole, to keep the number of mappings small */

struct page_run {
	uint64_t start, end;
	bool there; /* its new pages are mapped at base */
};
struct job {
	struct dp_replace *s;
	struct dp_freeze *f;
	struct dp_borrow *b; /* while a thread is borrowed */
	struct dp_priority priority;
	uint64_t *held_ns;
	struct dp_replace_span span;
	struct page_run run[RUNS_MOST];
	size_t nruns;
	uint64_t base;
	int mem;
	bool stays;       /* the module cannot be unloaded */
	bool held_writes; /* the kernel lets only the tracer of a stopped thread write */
	bool unsure;      /* a call did not return, and may still take effect */
};

static inline uint64_t base_of(const struct job *j, uint64_t addr)
{
	return j->base + (addr - j->span.start);
}

static inline uint64_t offset_of(const struct job *j, uint64_t addr)
{
	return j->span.offset + (addr - j->span.start);
}

/* Makes sure that j->b is a borrowed thread; with j->f it is one of the held ones. */
struct dp_error *dp_job_take_thread(struct job *j) DP_MUST_CHECK;
struct dp_error *dp_job_call(struct job *j, const char *name, long nr, const uint64_t args[6], int64_t *ret) DP_MUST_CHECK;
struct dp_error *dp_job_script(struct job *j, struct dp_step *step, size_t n) DP_MUST_CHECK;
/* Opens the module's file in the target, and makes the n calls `behind` with it (dp_remote_open()). */
struct dp_error *dp_job_open(struct job *j, struct dp_step *behind, size_t n, int64_t *fd) DP_MUST_CHECK;
struct dp_error *dp_job_changed(const struct job *j);
/* Returns the thread. If `err` is set, it is returned unchanged. */
struct dp_error *dp_job_give_thread(struct job *j, struct dp_error *err) DP_MUST_CHECK;
/* Moves the new pages over the text, with all threads held if the program may unload it. */
struct dp_error *dp_job_move(struct job *j) DP_MUST_CHECK;

#endif

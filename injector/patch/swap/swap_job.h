/* SPDX-License-Identifier: MIT */
/* Text of one module that is being replaced: shared by swap_commit.c and swap_move.c. */
#ifndef DP_INJECTOR_SWAP_JOB_H
#define DP_INJECTOR_SWAP_JOB_H

#include "injector/patch/swap/swap.h"

#define RUNS_MOST 3 /* of one module; beyond, its text is replaced as a whole: mappings do not become many */

struct run {
	uint64_t start, end;
	bool there; /* its new pages are mapped at base */
};
struct job {
	struct dp_swap *s;
	struct dp_freeze *f;
	struct dp_borrow *b; /* while a thread works for us */
	struct dp_priority priority;
	uint64_t *held_ns;
	struct dp_swap_span span;
	struct run run[RUNS_MOST];
	size_t nruns;
	uint64_t base;
	int mem;
	bool stays;       /* nobody can unload the module */
	bool held_writes; /* the kernel lets only the tracer of a stopped thread write */
	bool unsure;      /* a call did not return, and may still do what it was asked to */
};

static inline uint64_t base_of(const struct job *j, uint64_t addr)
{
	return j->base + (addr - j->span.start);
}

static inline uint64_t offset_of(const struct job *j, uint64_t addr)
{
	return j->span.offset + (addr - j->span.start);
}

/* Sees to it that j->b works for us; j->f: it is one of those that are held. */
struct dp_error *dp_job_take_thread(struct job *j) DP_MUST_CHECK;
struct dp_error *dp_job_call(struct job *j, const char *name, long nr, const uint64_t args[6], int64_t *ret) DP_MUST_CHECK;
struct dp_error *dp_job_script(struct job *j, struct dp_step *step, size_t n) DP_MUST_CHECK;
/* The module's file, in the target. */
struct dp_error *dp_job_open(struct job *j, int64_t *fd) DP_MUST_CHECK;
struct dp_error *dp_job_changed(const struct job *j);
/* It goes back; `err` goes through, and is the one that counts. */
struct dp_error *dp_job_give_thread(struct job *j, struct dp_error *err) DP_MUST_CHECK;
/* Moves the new pages over the text. Where the program may unload it, all threads are held for that. */
struct dp_error *dp_job_move(struct job *j) DP_MUST_CHECK;

#endif

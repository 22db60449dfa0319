/* SPDX-License-Identifier: MIT */
/* A borrowed thread, and the choice of it. Private to the ptrace half of injector/. */
#ifndef DP_INJECTOR_TRACEE_BORROW_BORROW_H
#define DP_INJECTOR_TRACEE_BORROW_BORROW_H

#include "injector/tracee/stop/temp_mask.h"
#include "injector/tracee/tracee.h"

struct dp_borrow {
	struct dp_process p;
	struct dp_held own; /* the thread, if it is not part of a freeze */
	struct dp_held *h;  /* the thread; h->regs is restored at the end */
	dp_addr boot;
	struct dp_temp_mask masks;
	struct dp_freeze *frozen; /* the freeze the thread is part of, or NULL */
	bool suspended;           /* seccomp */
	bool stuck;               /* a call did not return */
	bool home;                /* the thread has restored itself, or is about to: its registers are its own */
};

/* DP_TAG_NO_THREAD or DP_TAG_GONE if the thread is no longer borrowed. */
struct dp_error *dp_borrow_check(const struct dp_borrow *b) DP_MUST_CHECK;

/* Chooses the best thread of a freeze. */
struct dp_error *dp_choose_frozen(const struct dp_process *p, struct dp_freeze *f, struct dp_held **ret) DP_MUST_CHECK;
/* Inspects all threads without stopping them, then stops the best one. */
struct dp_error *dp_choose_running(const struct dp_process *p, uint64_t limit_ns, struct dp_held *ret) DP_MUST_CHECK;
/*
 * Moves a thread inside a restartable sequence to the sequence's abort handler, as any preemption would. Otherwise its registers
 * would be restored into the middle of it, after the kernel has lost track of the sequence.
 */
void dp_rseq_abort(const struct dp_process *p, struct dp_held *h);
/* The abort handler of the sequence around `pc`, from its module's file; 0 if there is none. For kernels before 5.13. */
uint64_t dp_rseq_of_file(const struct dp_process *p, uint64_t pc);

#endif

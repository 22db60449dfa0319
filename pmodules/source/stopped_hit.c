/* SPDX-License-Identifier: MIT */
/* The thread whose probe hit is parked in the agent: shown at the probe, with the registers of the hit. */
#include "pmodules/source/stopped_internal.h"

#include <stdlib.h>

static struct dp_stopped_thread *of_tid(struct dp_stopped *s, pid_t tid)
{
	for (size_t i = 0; i < s->nthreads; i++)
		if (s->thread[i].tid == tid)
			return &s->thread[i];
	return NULL;
}

static struct dp_stopped_thread *waiting(struct dp_stopped *s, pid_t ns_tid)
{
	for (size_t i = 0; i < s->freeze.n; i++)
		if (s->freeze.thread[i].ns_tid == ns_tid)
			return of_tid(s, s->freeze.thread[i].tid);
	return NULL;
}

struct dp_error *dp_stopped_take_hit(struct dp_stopped *s)
{
	const struct dp_stopped_hit *hit = s->options.hit;
	if (!hit)
		return NULL;
	struct dp_stopped_thread *t = waiting(s, hit->ns_tid);
	s->hit_waits = false;
	if (!t || !hit->take(hit->data))
		return dp_error(DP_TAG_GONE, "the thread that hit the probe resumed before the snapshot: it had waited as "
		                             "long as --max-pause allows");
	s->hit_waits = true;
	struct user_regs_struct r = hit->regs; /* keep registers that the probe does not record */
	r.fs_base = t->regs.fs_base;
	r.gs_base = t->regs.gs_base;
	r.cs = t->regs.cs;
	r.ss = t->regs.ss;
	r.ds = t->regs.ds;
	r.es = t->regs.es;
	r.fs = t->regs.fs;
	r.gs = t->regs.gs;
	t->regs = r;
	free((void *)(uintptr_t)t->kstack); /* of the parking, not of the program */
	t->kstack = NULL;
	t->state = 'R';
	t->syscall = -1;
	t->is_fault = true;
	return NULL;
}

bool dp_stopped_may_hold_again(const struct dp_stopped *s)
{
	const struct dp_stopped_hit *hit = s->options.hit;
	return s->mode == DP_STOPPED_STOP && (!hit || (s->hit_waits && hit->waits(hit->data)));
}

void dp_stopped_let_go(struct dp_stopped *s)
{
	if (s->hit_waits)
		s->options.hit->let_go(s->options.hit->data);
	s->hit_waits = false;
}

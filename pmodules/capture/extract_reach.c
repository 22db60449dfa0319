/* SPDX-License-Identifier: MIT */
/* The prefetch: resolves frames and reads their variables' memory, builds nothing. */
#include "pmodules/capture/extract_internal.h"

static void reach_scope(struct dp_extract *x, const struct dp_fstate *state, const struct dp_fscope *scope, unsigned depth)
{
	struct dp_reach *r = &x->reach;
	for (size_t i = 0; i < scope->n; i++) {
		struct dp_value v;
		/* Reserve the same share for the rest as extract.c does. */
		const uint64_t kept = i + 1 < scope->n ? r->budget / (scope->n - i + 1) : 0;
		dp_frame_find(&x->frames, state, &scope->variable[i], &v);
		r->budget -= kept;
		dp_reach(r, &v, depth);
		r->budget += kept;
	}
}

static void reach_frame(struct dp_extract *x, const struct dp_fstate *state, unsigned depth)
{
	const struct dp_fplan *p = state->plan;
	for (size_t i = 0; i < p->nscopes; i++)
		reach_scope(x, state, &p->scope[i], depth);
	dp_reach_finish(&x->reach);
}

void dp_extract_renew(struct dp_extract *x)
{
	dp_reach_fini(&x->reach);
	dp_reach_init(&x->reach, x->w, &x->limits);
	dp_extract_list_fini(&x->globals);
	dp_extract_list_fini(&x->thread_locals);
}

void dp_extract_rehearse(struct dp_extract *x, const struct dp_stopped_thread *t)
{
	struct dp_fwalk walk;
	dp_debug_ctx_forget(x->w);
	x->w->fs_base = t->regs.fs_base;
	if (!dp_frames_walk(&x->frames, t, x->limits.frames, &walk))
		return;
	for (size_t i = 0; i < walk.n; i++)
		dp_frames_mean(&x->frames, walk.state[i].plan);
	for (size_t i = 0; i < walk.n && !x->options.no_variables; i++)
		reach_frame(x, &walk.state[i], t->is_fault ? x->limits.fault_depth : x->limits.depth);
	dp_fwalk_fini(&walk);
	dp_debug_ctx_forget(x->w);
}

/* SPDX-License-Identifier: MIT */
/*
 * A function that ends in a tail call leaves no frame. The caller's call target and the function that returns to it show which
 * functions lie between: the paths of tail calls from one to the other. If there are several paths, only their common start and
 * end are certain; nothing else is shown (like gdb: call_site_find_chain, dwarf2/frame-tailcall.c).
 */
#include "pmodules/frames/frames.h"

#include <stdlib.h>
#include <string.h>

enum { CHAIN_MAX = 32, STEPS_MAX = 1024, FUNCTIONS_MAX = 256 };

struct ways {
	struct dp_frames *f;
	uint64_t callee;
	unsigned steps;
	struct dp_fsite *at[CHAIN_MAX]; /* the current path */
	size_t n;
	bool any;
	struct dp_fsite *found[CHAIN_MAX]; /* the first path found */
	size_t length, first, last;        /* length of the common start and end of all paths */
};

static void found(struct ways *w)
{
	if (!w->any) {
		memcpy(w->found, w->at, w->n * sizeof(*w->at));
		w->length = w->first = w->last = w->n;
		w->any = true;
		return;
	}
	size_t first = 0, last = 0;
	while (first < w->first && first < w->n && w->at[first] == w->found[first])
		first++;
	while (last < w->last && last < w->n && w->at[w->n - 1 - last] == w->found[w->length - 1 - last])
		last++;
	w->first = first;
	w->last = last;
}

static bool is_on_way(const struct ways *w, const struct dp_fsite *site)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->at[i] == site)
			return true;
	return false;
}

/* False: a tail call has an unknown target. */
static bool follow(struct ways *w, uint64_t target)
{
	struct dp_fsite *jump;
	size_t n;
	if (target == w->callee) {
		found(w);
		return true;
	}
	if (!target || w->n == CHAIN_MAX || !dp_frames_jumps(w->f, target, &jump, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (++w->steps > STEPS_MAX)
			return false;
		if (is_on_way(w, &jump[i]))
			continue;
		w->at[w->n++] = &jump[i];
		const bool known = follow(w, jump[i].target);
		w->n--;
		if (!known)
			return false;
	}
	return true;
}

/* Stores the certain tail calls, outermost first. */
static void conclude(const struct ways *w, struct dp_fchain *c)
{
	const bool all = w->first == w->length;
	const size_t first = all ? w->length : w->first, last = all                           ? 0
	                                                        : w->last < w->length - first ? w->last
	                                                                                      : w->length - first;
	struct dp_fsite **site =
	        first + last ? dp_arena_alloc(&w->f->w->arena, (first + last) * sizeof(struct dp_fsite *)) : NULL;
	if (!site)
		return;
	memcpy(site, w->found, first * sizeof(struct dp_fsite *));
	memcpy(site + first, w->found + w->length - last, last * sizeof(struct dp_fsite *));
	c->site = site;
	c->n = first + last;
}

static const struct dp_fchain *between(struct dp_frames *f, struct dp_fplan *caller, uint64_t callee)
{
	const struct dp_fsite *site = dp_frames_site(f, caller);
	if (!site || !callee || !site->target || site->target == callee)
		return NULL;
	for (size_t i = 0; i < 2; i++)
		if (caller->chain_to[i].callee == callee)
			return &caller->chain_to[i];
	caller->chain_to[1] = caller->chain_to[0];
	caller->chain_to[0] = (struct dp_fchain){.callee = callee};
	struct ways w = {.f = f, .callee = callee};
	if (follow(&w, site->target) && w.any)
		conclude(&w, &caller->chain_to[0]);
	return &caller->chain_to[0];
}

bool dp_frames_may_return(struct dp_frames *f, uint64_t entry)
{
	uint64_t seen[FUNCTIONS_MAX] = {entry};
	size_t n = 1;
	for (size_t i = 0; i < n; i++) {
		struct dp_fsite *jump;
		size_t jumps;
		if (!seen[i] || !dp_frames_jumps(f, seen[i], &jump, &jumps))
			return true;
		for (size_t k = 0; k < jumps; k++) {
			size_t known = 0;
			while (known < n && seen[known] != jump[k].target)
				known++;
			if (jump[k].target == entry || n == FUNCTIONS_MAX)
				return true;
			if (known == n)
				seen[n++] = jump[k].target;
		}
	}
	return false;
}

/* ---- frames ------------------------------------------------------------------------------------------------------------- */

static const struct dp_fchain *chain_of(struct dp_frames *f, const struct dp_fwalk *walk, size_t i)
{
	const struct dp_fstate *s = &walk->state[i], *outer = s->caller;
	if (!outer || s->is_signal || !s->cfa || outer->exact || outer->is_guess || !outer->plan->debug)
		return NULL;
	return between(f, outer->plan, dp_frames_entry(s->plan));
}

/* The function has released its frame: the registers are its caller's, and the return address is on top of the stack. */
static bool put(struct dp_frames *f, const struct dp_fstate *inner, const struct dp_fstate *outer, uint64_t pc,
                struct dp_fstate *to)
{
	*to = (struct dp_fstate){.regs = outer->regs, .is_tail = true};
	to->regs.value[DP_FRAME_PC] = pc;
	to->regs.value[DP_FRAME_RSP] = inner->cfa - 8;
	to->plan = dp_frames_plan(f, pc, false);
	if (!to->plan)
		return false;
	dp_frames_mean(f, to->plan);
	to->cfa = inner->cfa;
	return true;
}

static size_t put_all(struct dp_frames *f, const struct dp_fchain *c, const struct dp_fstate *inner,
                      const struct dp_fstate *outer, struct dp_fstate *to)
{
	size_t n = 0;
	for (size_t i = c ? c->n : 0; i-- && put(f, inner, outer, c->site[i]->pc, &to[n]);)
		n++;
	return n;
}

void dp_frames_tails(struct dp_frames *f, struct dp_fwalk *walk)
{
	size_t more = 0, n = 0, inner = 0;
	for (size_t i = 0; i < walk->n; i++) {
		const struct dp_fchain *c = chain_of(f, walk, i);
		more += c ? c->n : 0;
	}
	struct dp_fstate *all = more ? malloc((walk->n + more) * sizeof(*all)) : NULL;
	if (!all)
		return;
	for (size_t i = 0; i < walk->n; i++) {
		const struct dp_fstate *s = &walk->state[i];
		all[n++] = *s;
		n += put_all(f, chain_of(f, walk, i), s, s->caller, &all[n]);
		if (i + 1 == walk->inner)
			inner = n;
	}
	for (size_t i = 0; i < n; i++) /* no caller where frames were left out */
		all[i].caller = (all[i].is_tail || all[i].caller) && i + 1 < n ? &all[i + 1] : NULL;
	free(walk->state);
	walk->state = all;
	walk->n = n;
	walk->inner = inner;
}

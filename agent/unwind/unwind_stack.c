/* SPDX-License-Identifier: MIT */
/*
 * Determines the stack's memory: the pages around rsp that a fault-safe read found readable. They are read directly from then on,
 * and slot->stack_lo keeps them from hit to hit; all else is read through the kernel, word by word.
 */
#include "agent/unwind/unwind_walk.h"

static int seen(const struct dp_walk *w, uint64_t page)
{
	uint64_t word;

	return dp_self_read(w->agent, &word, page, sizeof(word)) == 0;
}

/* Publishes the range: one store, so that a nested hit finds the old or the new one. */
static void keep(const struct dp_walk *w)
{
	uint64_t pages = (w->hi - w->lo) / DP_UNWIND_PAGE;

	if (w->own && pages < DP_UNWIND_PAGE)
		__atomic_store_n(&w->slot->stack_lo, w->lo | pages, __ATOMIC_RELAXED);
}

static void range_at(struct dp_walk *w, uint64_t sp)
{
	uint64_t page = sp & -DP_UNWIND_PAGE;

	dp_walk_set_range(w, page, seen(w, page) ? page + DP_UNWIND_PAGE : page);
	keep(w);
}

void dp_walk_enter_stack(struct dp_walk *w)
{
	uint64_t page = w->gpr[DP_GPR_RSP] & -DP_UNWIND_PAGE;
	uint64_t lo = w->lo;

	if (w->hi > lo && page < lo && lo - page <= DP_UNWIND_REACH * DP_UNWIND_PAGE) {
		while (lo > page && seen(w, lo - DP_UNWIND_PAGE))
			lo -= DP_UNWIND_PAGE;
		if (lo == page) {
			dp_walk_set_range(w, lo, w->hi);
			keep(w);
			return;
		}
	}
	range_at(w, w->gpr[DP_GPR_RSP]);
}

void dp_walk_guess_from_here(struct dp_walk *w)
{
	dp_walk_set_range(w, 0, 0);
	w->own = 0;
	w->guessed = 1;
}

void dp_walk_change_stack(struct dp_walk *w)
{
	uint64_t sp = w->gpr[DP_GPR_RSP];

	if (w->guessed)
		return;
	if (sp >= w->lo && sp < w->hi + DP_UNWIND_REACH * DP_UNWIND_PAGE)
		return;
	w->own = 0;
	range_at(w, sp);
}

int dp_walk_read_far(struct dp_walk *w, uint64_t addr, uint64_t *ret)
{
	uint64_t end = addr + sizeof(*ret);

	if (w->hi > w->lo && addr >= w->lo && end > addr && end - w->hi <= DP_UNWIND_REACH * DP_UNWIND_PAGE) {
		uint64_t hi = w->hi;

		while (hi < end && seen(w, hi))
			hi += DP_UNWIND_PAGE;
		dp_walk_set_range(w, w->lo, hi);
		keep(w);
		if (end > hi)
			return 0;
		*ret = DP_UNWIND_LOAD(addr);
		return 1;
	}
	return dp_self_read(w->agent, ret, addr, sizeof(*ret)) == 0;
}

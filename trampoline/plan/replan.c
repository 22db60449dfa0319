/* SPDX-License-Identifier: MIT */
/*
 * Placing anew. Removes the plans that touch the site's window, all that rely on bytes they wrote, and the instructions that were
 * evicted for no other plan; then places all of them again with the new request, from high to low addresses, since a jump relies
 * on the bytes after it. On failure everything is restored exactly.
 */
#include "trampoline/plan/planner.h"

#include "trampoline/arch/x86_64/asm/encode.h"
#include "trampoline/arch/x86_64/emit/springboard.h"

#include <stdlib.h>
#include <string.h>

#define MOST   512u /* plans removed at a time */
#define WINDOW 24u  /* bytes after the site that its jumps may use */
#define FAR    160u /* distance from an item to those that rely on it */
#define TRIES  8u   /* orders tried */
#define MANY   64u  /* with more plans, only the first order is tried */
#define BACK   24u  /* backtracking steps, of up to four items each, in each order */

struct saved {
	uint32_t item;
	uint8_t *stub, *springboard; /* bytes */
	uint8_t springboard_size;    /* 0: it has none of its own */
};

struct replan {
	struct dp_planner *planner;
	uint32_t set[MOST]; /* items to be removed */
	unsigned n;
	struct saved saved[MOST]; /* in the order of removal */
	unsigned nsaved;
	uint32_t placed[MOST + 1];
	unsigned nplaced;
	unsigned promoted; /* the first ones, as many, must be undone together: among them is a probe on an instruction that
	                      one of them evicted */
};

static struct dp_item *item_of(const struct replan *r, uint32_t i)
{
	return dp_sites_item(r->planner->sites, i);
}

/* ---- the closure ------------------------------------------------------------------------------------------------------ */

static bool has(const struct replan *r, uint32_t i)
{
	for (unsigned k = 0; k < r->n; k++)
		if (r->set[k] == i)
			return true;
	return false;
}

/*
 * Includes all items below it at the same site: a probe there moves as a whole. False if there are too many, or an immovable one.
 */
static bool include(struct replan *r, uint32_t i)
{
	for (; i != DP_NO_ITEM && !has(r, i); i = item_of(r, i)->below) {
		if (r->n == MOST || item_of(r, i)->foreign)
			return false;
		r->set[r->n++] = i;
	}
	return true;
}

static bool relies_on(const struct dp_item *item, uint32_t i)
{
	for (uint8_t k = 0; k < item->plan.nsupports; k++)
		if (item->support[k] == i)
			return true;
	return false;
}

static bool include_users(struct replan *r, uint32_t i)
{
	const uint64_t site = item_of(r, i)->plan.site;
	for (uint64_t from = site - FAR; item_of(r, i)->nusers;) {
		uint32_t user = dp_sites_touching(r->planner->sites, site - FAR, 2 * FAR, &from);
		if (user == DP_NO_ITEM)
			return true;
		for (uint32_t k = user; k != DP_NO_ITEM; k = item_of(r, k)->below)
			if (relies_on(item_of(r, k), i) && !include(r, user))
				return false;
	}
	return true;
}

/*
 * dp_unplace() removes evicted instructions that are no longer needed, but they must be saved: all that the set relies on and
 * that no request asked for.
 */
static bool include_victims(struct replan *r, uint32_t i)
{
	const struct dp_item *item = item_of(r, i);
	for (uint8_t k = 0; k < item->plan.nsupports; k++)
		if (!item_of(r, item->support[k])->asked && !item_of(r, item->support[k])->foreign &&
		    !include(r, item->support[k]))
			return false;
	return true;
}

static bool closure(struct replan *r, uint64_t site)
{
	for (uint64_t from = 0;;) {
		uint32_t i = dp_sites_touching(r->planner->sites, site, WINDOW, &from);
		if (i == DP_NO_ITEM)
			break;
		if (!item_of(r, i)->foreign && !include(r, i))
			return false;
	}
	for (unsigned k = 0; k < r->n; k++)
		if (!include_users(r, r->set[k]) || !include_victims(r, r->set[k]))
			return false;
	return r->n != 0;
}

/* ---- removing and restoring ------------------------------------------------------------------------------------------- */

static int by_seq_down(const void *a, const void *b, void *data)
{
	const struct replan *r = data;
	uint32_t x = item_of(r, *(const uint32_t *)a)->seq, y = item_of(r, *(const uint32_t *)b)->seq;
	return x < y ? 1 : x > y ? -1 : 0;
}

static bool shares_springboard(const struct replan *r, const struct dp_item *item)
{
	return item->below != DP_NO_ITEM && item_of(r, item->below)->plan.springboard == item->plan.springboard;
}

static bool save(struct replan *r, uint32_t i)
{
	const struct dp_item *item = item_of(r, i);
	const struct dp_plan *plan = &item->plan;
	const size_t n = (size_t)(plan->stub_end - plan->stub);
	struct saved *s = &r->saved[r->nsaved];
	*s = (struct saved){.item = i, .stub = malloc(n), .springboard = malloc(DP_JMP_FAR)};
	r->nsaved++;
	if (!s->stub || !s->springboard || !dp_pages_read(r->planner->pages, plan->stub, s->stub, n))
		return false;
	if (!plan->springboard || shares_springboard(r, item))
		return true;
	s->springboard_size = item->springboard;
	return dp_pages_read(r->planner->pages, plan->springboard, s->springboard, s->springboard_size);
}

static void forget(struct replan *r)
{
	while (r->nsaved) {
		free(r->saved[--r->nsaved].stub);
		free(r->saved[r->nsaved].springboard);
	}
}

/* Saves all first: a springboard shared by several probes at one site leads elsewhere once one of them is removed. */
static bool take_out(struct replan *r)
{
	qsort_r(r->set, r->n, sizeof(*r->set), by_seq_down, r);
	for (unsigned k = 0; k < r->n; k++)
		if (!save(r, r->set[k]))
			return false;
	for (unsigned k = 0; k < r->n; k++)
		if (item_of(r, r->set[k])->live)
			dp_unplace(r->planner, r->set[k]);
	return true;
}

static void put(struct replan *r, uint64_t at, const uint8_t *bytes, size_t n)
{
	/* The pages were ours just before and nothing was done in between: only memory could be missing. */
	if (n)
		dp_error_destroy(dp_pages_put(r->planner->pages, at, bytes, n));
}

static void put_back(struct replan *r)
{
	for (unsigned k = r->nsaved; k-- > 0;) {
		const struct saved *s = &r->saved[k];
		const struct dp_plan *plan = &item_of(r, s->item)->plan;
		put(r, plan->stub, s->stub, (size_t)(plan->stub_end - plan->stub));
		put(r, plan->springboard, s->springboard, s->springboard_size);
		dp_sites_return(r->planner->sites, s->item);
	}
}

/* ---- placing anew ----------------------------------------------------------------------------------------------------- */

struct ask {
	const struct dp_request *request;
	uint32_t seq;
	bool trap;
};

static int by_site_down(const void *a, const void *b)
{
	const struct ask *x = a, *y = b;
	if (x->request->site != y->request->site)
		return x->request->site < y->request->site ? 1 : -1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static bool place_next(struct replan *r, const struct ask *ask)
{
	const uint32_t before = dp_sites_at(r->planner->sites, ask->request->site);
	uint32_t i = DP_NO_ITEM;
	struct dp_error *err = dp_place(r->planner, ask->request, false, &i);
	if (err && ask->trap) {
		dp_error_destroy(err);
		err = dp_place(r->planner, ask->request, true, &i);
	}
	dp_error_destroy(err);
	if (err)
		return false;
	r->placed[r->nplaced++] = i;
	if (i == before)
		r->promoted = r->nplaced;
	return true;
}

/* Undoes down to n items; or all, if items other than those n would lose what they rely on. */
static void undo(struct replan *r, unsigned n)
{
	if (n < r->promoted)
		n = r->promoted = 0;
	while (r->nplaced > n)
		dp_unplace(r->planner, r->placed[--r->nplaced]);
}

/*
 * Returns how many could be placed; n is success. One item's choice may leave no place to the next, whose upper bytes it has
 * chosen: then the last ones are undone and choose something else.
 */
static unsigned place_all(struct replan *r, const struct ask *ask, unsigned n)
{
	unsigned back = 0, most = 0;
	r->planner->variant = 0;
	while (r->nplaced < n) {
		if (place_next(r, &ask[r->nplaced]))
			continue;
		if (r->nplaced > most)
			most = r->nplaced;
		if (!r->nplaced || back++ == BACK)
			break;
		const unsigned depth = 1 + back % 4;
		undo(r, r->nplaced > depth ? r->nplaced - depth : 0);
		r->planner->variant++;
	}
	r->planner->variant = 0;
	return r->nplaced == n ? n : most;
}

/* A trap leaves the jumps before it one choice less: one of those may then need a trap too. */
static bool may_trap(const struct dp_item *item, bool traps)
{
	return traps && item->request.tactics >> DP_TACTIC_TRAP & 1;
}

static unsigned gather(const struct replan *r, const struct dp_request *request, bool traps, struct ask *ask)
{
	unsigned n = 0;
	for (unsigned k = 0; k < r->nsaved; k++) {
		const struct dp_item *item = item_of(r, r->saved[k].item);
		if (item->asked)
			ask[n++] = (struct ask){&item->request, item->seq,
			                        item->plan.tactic == DP_TACTIC_TRAP || may_trap(item, traps)};
	}
	ask[n++] = (struct ask){request, UINT32_MAX, traps};
	qsort(ask, n, sizeof(*ask), by_site_down);
	return n;
}

static bool place_in_order(struct replan *r, const struct ask *ask, unsigned n, const struct dp_request *request, uint32_t *ret,
                           unsigned *done)
{
	*done = place_all(r, ask, n);
	for (unsigned k = 0; *done == n && k < n; k++)
		if (ask[k].request == request)
			*ret = r->placed[k];
	if (*done == n)
		return true;
	undo(r, 0);
	return false;
}

/* From high to low addresses; an item that does not fit goes first in the next attempt. */
static bool place_anew(struct replan *r, const struct dp_request *request, bool traps, uint32_t *ret)
{
	struct ask ask[MOST + 1];
	const unsigned n = gather(r, request, traps, ask);
	unsigned done;
	for (unsigned tries = 0; tries < (n > MANY || traps ? 1 : TRIES); tries++) {
		if (place_in_order(r, ask, n, request, ret, &done))
			return true;
		struct ask failed = ask[done];
		memmove(ask + 1, ask, done * sizeof(*ask));
		ask[0] = failed;
	}
	/* Without evictions, a site takes no byte from those before it; there is always room for a trap. */
	qsort(ask, n, sizeof(*ask), by_site_down);
	r->planner->plain = true;
	const bool good = place_in_order(r, ask, n, request, ret, &done);
	r->planner->plain = false;
	return good;
}

bool dp_replan(struct dp_planner *planner, const struct dp_request *request, bool traps, uint32_t *ret)
{
	struct replan r = {.planner = planner};
	bool good = false;
	if (!closure(&r, request->site))
		return false;
	if (take_out(&r)) {
		good = place_anew(&r, request, traps, ret);
		if (!good)
			put_back(&r);
	}
	forget(&r);
	return good;
}

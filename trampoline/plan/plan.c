/* SPDX-License-Identifier: MIT */
/*
 * The planner: places requests one after the other among the earlier ones (place.c, evict.c); if those are in the way, places
 * them anew (replan.c).
 */
#include "trampoline/plan/planner.h"

#include <stdlib.h>

struct dp_error *dp_planner_create(struct dp_space *space, const struct dp_runtime *runtime, struct dp_planner **ret)
{
	struct dp_planner *planner = calloc(1, sizeof(*planner));
	if (!planner)
		return dp_error_nomem();
	planner->space = space;
	planner->runtime = *runtime;
	struct dp_error *err = dp_pages_create(space, &planner->pages);
	if (!err)
		err = dp_sites_create(&planner->sites);
	if (!err)
		err = dp_analysis_create(&planner->known);
	if (err) {
		dp_planner_destroy(planner);
		return err;
	}
	*ret = planner;
	return NULL;
}

struct dp_planner *dp_planner_destroy(struct dp_planner *planner)
{
	if (!planner)
		return NULL;
	dp_pages_destroy(planner->pages);
	dp_sites_destroy(planner->sites);
	dp_analysis_destroy(planner->known);
	free(planner->chunk);
	dp_buf_fini(&planner->code);
	free(planner->plans);
	free(planner);
	return NULL;
}

size_t dp_planner_extents(struct dp_planner *planner, const struct dp_extent **ret)
{
	return dp_pages_extents(planner->pages, ret);
}

struct dp_error *dp_planner_occupy(struct dp_planner *planner, uint64_t addr, uint8_t changed, uint8_t len)
{
	struct dp_item item = {.foreign = true, .below = dp_sites_at(planner->sites, addr)};
	if (changed > len || len > sizeof(item.plan.new_bytes))
		return dp_error(DP_TAG_INTERNAL, "an installed probe of %u bytes, %u of them changed", len, changed);
	item.plan = (struct dp_plan){.site = addr, .probe = DP_NO_PROBE, .changed = changed, .len = len};
	uint32_t i = dp_sites_new(planner->sites, &item);
	if (i == DP_NO_ITEM || !dp_sites_enter(planner->sites, i))
		return dp_error_nomem();
	return NULL;
}

/* ---- results ---------------------------------------------------------------------------------------------------------- */

struct ordered {
	uint32_t seq, item;
};

static int by_seq(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* All that a plan relies on was there when it was entered, and is removed only with it: so the order of entering is right. */
static void gather(struct dp_planner *planner)
{
	const uint32_t all = dp_sites_n(planner->sites);
	struct ordered *order = malloc((all + 1) * sizeof(*order));
	size_t n = 0;
	planner->plans = malloc((all + 1) * sizeof(*planner->plans));
	for (uint32_t i = 0; order && planner->plans && i < all; i++) {
		const struct dp_item *item = dp_sites_item(planner->sites, i);
		if (item->live && !item->foreign)
			order[n++] = (struct ordered){item->seq, i};
	}
	if (n)
		qsort(order, n, sizeof(*order), by_seq);
	for (size_t k = 0; k < n; k++)
		planner->plans[k] = dp_sites_item(planner->sites, order[k].item)->plan;
	free(order);
	planner->nplans = n;
}

size_t dp_planner_plans(struct dp_planner *planner, const struct dp_plan **ret)
{
	if (!planner->plans)
		gather(planner);
	*ret = planner->plans;
	return planner->plans ? planner->nplans : 0;
}

/* ---- requests --------------------------------------------------------------------------------------------------------- */

static bool may_help(const struct dp_error *err)
{
	return err->tag == DP_TAG_OVERLAP || err->tag == DP_TAG_NO_SPACE || err->tag == DP_TAG_TOO_SHORT;
}

static struct dp_error *add(struct dp_planner *planner, const struct dp_request *request, uint32_t *item)
{
	struct dp_error *err = dp_place(planner, request, false, item), *second;
	if (!err)
		return NULL;
	bool placed = may_help(err) && dp_replan(planner, request, false, item);
	if (!placed && may_help(err) && (request->tactics >> DP_TACTIC_TRAP & 1)) {
		second = dp_place(planner, request, true, item);
		placed = !second || dp_replan(planner, request, true, item);
		dp_error_destroy(second);
	}
	if (!placed)
		return err;
	dp_error_destroy(err);
	return NULL;
}

struct dp_error *dp_planner_add(struct dp_planner *planner, const struct dp_request *request, struct dp_plan *ret)
{
	uint32_t item = DP_NO_ITEM;
	free(planner->plans);
	planner->plans = NULL;
	DP_TRY(add(planner, request, &item));
	*ret = dp_sites_item(planner->sites, item)->plan;
	return NULL;
}

/* SPDX-License-Identifier: MIT */
#include "trampoline/plan/evict.h"

#include "trampoline/arch/x86_64/relocate/relocate.h"

void dp_search_copy(struct dp_search *s)
{
	const struct dp_insn *first = &s->job->first, *next = &s->victim[0];
	const bool goes_on = first->flow == DP_FLOW_NEXT || first->flow == DP_FLOW_JCC;
	struct dp_item *item = s->job->item;
	item->copied = 0;
	if (goes_on && next->addr == first->addr + first->len && dp_stubs_extend(s->job->planner, next, &item->plan))
		item->copied = next->addr;
}

void dp_search_uncopy(struct dp_search *s, const struct dp_plan *before)
{
	dp_stubs_cut(s->job->planner, before, &s->job->item->plan);
	s->job->item->copied = 0;
}

/* The pair of the copy: its address in the stub. */
static uint8_t copy_of(const struct dp_plan *plan, uint64_t site)
{
	uint8_t k = 0;
	while (k < plan->npairs &&
	       (plan->pair[k].original != site || plan->pair[k].stub - plan->stub >= plan->stub_end - plan->stub))
		k++;
	return k;
}

/* Drops the pairs of what follows `at` in the stub. */
static void end_at(struct dp_plan *plan, uint64_t at)
{
	uint8_t n = 0;
	for (uint8_t k = 0; k < plan->npairs; k++)
		if (plan->pair[k].stub <= at || plan->pair[k].stub >= plan->stub_end)
			plan->pair[n++] = plan->pair[k];
	plan->npairs = n;
}

static bool lead(struct dp_planner *planner, struct dp_plan *plan, const struct dp_plan *victim)
{
	const uint8_t k = copy_of(plan, victim->site);
	if (k == plan->npairs)
		return true; /* it leads there already */
	const uint64_t at = plan->pair[k].stub;
	if (dp_jmp_size(at, victim->springboard) > plan->stub_end - at)
		return false;
	planner->code.len = 0;
	dp_put_jmp(&planner->code, at, victim->springboard);
	while (planner->code.len < plan->stub_end - at)
		dp_put_u8(&planner->code, DP_INT3);
	dp_error_destroy(
	        dp_pages_put(planner->pages, at, planner->code.data, planner->code.len)); /* over its own bytes: cannot fail */
	end_at(plan, at);
	return true;
}

bool dp_copies_lead(struct dp_planner *planner, const struct dp_item *victim)
{
	const uint64_t site = victim->plan.site;
	for (uint64_t from = 0;;) {
		const uint32_t i = dp_sites_touching(planner->sites, site, 1, &from);
		if (i == DP_NO_ITEM)
			return true;
		for (uint32_t k = i; k != DP_NO_ITEM; k = dp_sites_item(planner->sites, k)->below) {
			struct dp_item *item = dp_sites_item(planner->sites, k);
			if (item->copied == site && !lead(planner, &item->plan, &victim->plan))
				return false;
		}
	}
}

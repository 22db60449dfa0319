/* SPDX-License-Identifier: MIT */
/* Tells the planner of new probes about those that are already in the target. */
#include "injector/resident/resident.h"

/*
 * Probes that will be superseded are not in the way: the new one uses exactly their bytes. Sites without a probe are left to the
 * check at install time: a new group's hook may be written over an old one's.
 */
static bool in_the_way(const struct dp_placed *p)
{
	return dp_placed_stands(p) && !p->announced && !p->covered && p->probe != DP_NO_PROBE;
}

struct dp_error *dp_target_occupy(struct dp_target *t, struct dp_planner *planner)
{
	for (size_t i = 0; i < t->nstanding; i++) {
		const struct dp_installation *in = &t->resident[i]->in;
		for (size_t k = 0; !t->resident[i]->unmapped && k < in->nplaced; k++)
			if (in_the_way(&in->placed[k]))
				DP_TRY(dp_planner_occupy(planner, in->placed[k].addr, in->placed[k].nchanged, in->placed[k].len));
	}
	return NULL;
}

struct dp_error *dp_target_name_overlap(struct dp_target *t, uint64_t site, struct dp_error *err)
{
	if (!err || err->tag != DP_TAG_OVERLAP)
		return err;
	for (size_t i = 0; i < t->nstanding; i++) {
		const struct dp_installation *in = &t->resident[i]->in;
		for (size_t k = 0; !t->resident[i]->unmapped && k < in->nplaced; k++) {
			const struct dp_placed *p = &in->placed[k];
			if (!in_the_way(p) || site + 5 <= p->addr || site >= p->addr + p->len)
				continue;
			dp_error_destroy(err);
			return dp_error(DP_TAG_STANDING,
			                "a probe that an earlier dynprobe left in process %d is at 0x%llx%s; remove it first",
			                t->process.pid, (unsigned long long)p->addr, p->addr == site ? "" : " and overlaps");
		}
	}
	return err;
}

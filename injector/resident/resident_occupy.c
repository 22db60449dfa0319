/* SPDX-License-Identifier: MIT */
/* Probes that stand in the target already, as the planner of new ones has to know them. */
#include "injector/resident/resident.h"

/*
 * One that is to be superseded is not in the way: what takes its place has exactly its bytes. Sites that are nobody's probe are
 * left to the look at install: a new group's own hook may be put over an old one's.
 */
static bool in_the_way(const struct dp_placed *p)
{
	return dp_placed_stands(p) && !p->announced && !p->covered && p->probe != DP_NO_PROBE;
}

struct dp_error *dp_target_occupy(struct dp_target *t, struct dp_planner *planner)
{
	for (size_t i = 0; i < t->nstanding; i++) {
		const struct dp_installation *in = &t->standing[i]->in;
		for (size_t k = 0; !t->standing[i]->unmapped && k < in->nplaced; k++)
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
		const struct dp_installation *in = &t->standing[i]->in;
		for (size_t k = 0; !t->standing[i]->unmapped && k < in->nplaced; k++) {
			const struct dp_placed *p = &in->placed[k];
			if (!in_the_way(p) || site + 5 <= p->addr || site >= p->addr + p->len)
				continue;
			dp_error_destroy(err);
			return dp_error(DP_TAG_STANDING,
			                "a probe that an earlier dynprobe left in %d stands at 0x%llx%s; take it out first",
			                t->process.pid, (unsigned long long)p->addr, p->addr == site ? "" : ", in the way");
		}
	}
	return err;
}

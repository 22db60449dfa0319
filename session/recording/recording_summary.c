/* SPDX-License-Identifier: MIT */
#include "session/recording/recording.h"

static void fill(const struct dp_recording *r, const struct dp_recording_group *g, size_t i, struct dp_summary_probe *ret)
{
	struct dp_resident *s = g->left->resident;
	const size_t class = g->first + i;
	const bool retired = dp_resident_retired(s, (unsigned)i);
	struct dp_loss l = {0};
	dp_resident_loss(s, (unsigned)i, &l);
	l.damaged += r->damaged[class];
	*ret = (struct dp_summary_probe){
	        .name = r->classes.probe[class].name,
	        .spec = r->classes.probe[class].spec.text,
	        .pid = dp_target_pid(r->left->target),
	        .comm = dp_target_comm(r->left->target),
	        .inner_pid = dp_target_inner_pid(r->left->target),
	        .tactic = "standing",
	        .tag = retired ? dp_tag_name(DP_TAG_FOREIGN) : NULL,
	        .reason = retired ? "another tool patched its place" : NULL,
	        .retired = retired,
	        .addr = dp_resident_site(s, (unsigned)i),
	        .recorded = r->recorded[class],
	        .lost = l,
	};
}

void dp_recording_summary(const struct dp_recording *r, struct dp_summary_probe *row)
{
	for (size_t k = 0; k < r->ngroups; k++)
		for (size_t i = 0; i < r->group[k].left->manifest.n; i++)
			fill(r, &r->group[k], i, &row[r->group[k].first + i]);
}

uint64_t dp_recording_lost(const struct dp_recording *r)
{
	uint64_t sum = 0;
	for (size_t k = 0; k < r->ngroups; k++)
		for (unsigned i = 0; i < r->group[k].left->manifest.n; i++) {
			struct dp_loss l = {0};
			dp_resident_loss(r->group[k].left->resident, i, &l);
			sum += dp_loss_sum(&l);
		}
	return sum;
}

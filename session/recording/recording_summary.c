/* SPDX-License-Identifier: MIT */
#include "session/recording/recording.h"

static void fill(const struct dp_recording *r, const struct dp_recording_group *g, size_t i, struct dp_summary_probe *ret)
{
	struct dp_resident *s = g->left->resident;
	const struct dp_residents *left = r->process[g->process].left;
	const struct dp_probe *class = &r->classes.probe[g->class[i]];
	const bool retired = s && dp_resident_retired(s, (unsigned)i);
	struct dp_loss l = {0};
	dp_residents_loss(g->left, (unsigned)i, &l);
	l.damaged += g->damaged[i];
	*ret = (struct dp_summary_probe){
	        .name = class->name,
	        .spec = class->spec.text,
	        .pid = dp_residents_pid(left),
	        .comm = dp_residents_comm(left),
	        .inner_pid = s ? dp_target_inner_pid(left->target) : 0,
	        .tactic = "standing",
	        .tag = retired ? dp_tag_name(DP_TAG_FOREIGN) : NULL,
	        .reason = retired ? "another tool patched its place" : NULL,
	        .retired = retired,
	        .addr = s ? dp_resident_site(s, (unsigned)i) : g->left->manifest.probe[i].site,
	        .recorded = g->recorded[i],
	        .lost = l,
	};
}

size_t dp_recording_nrows(const struct dp_recording *r)
{
	size_t n = 0;
	for (size_t k = 0; k < r->ngroups; k++)
		n += r->group[k].left->manifest.n;
	return n;
}

void dp_recording_summary(const struct dp_recording *r, struct dp_summary_probe *row)
{
	for (size_t k = 0; k < r->ngroups; k++)
		for (size_t i = 0; i < r->group[k].left->manifest.n; i++)
			fill(r, &r->group[k], i, row++);
}

uint64_t dp_recording_lost(const struct dp_recording *r)
{
	uint64_t sum = 0;
	for (size_t k = 0; k < r->ngroups; k++)
		for (unsigned i = 0; i < r->group[k].left->manifest.n; i++) {
			struct dp_loss l = {0};
			dp_residents_loss(r->group[k].left, i, &l);
			sum += dp_loss_sum(&l);
		}
	return sum;
}

/* SPDX-License-Identifier: MIT */
#include "session/recording/recording.h"

static void fill(const struct dp_recording *r, const struct dp_recording_group *g, size_t i, struct dp_summary_probe *ret)
{
	struct dp_resident *s = g->left->resident;
	const struct dp_target *t = r->process[g->process].left->target;
	const struct dp_probe *class = &r->classes.probe[g->class[i]];
	const bool retired = dp_resident_retired(s, (unsigned)i);
	struct dp_loss l = {0};
	dp_resident_loss(s, (unsigned)i, &l);
	l.damaged += g->damaged[i];
	*ret = (struct dp_summary_probe){
	        .name = class->name,
	        .spec = class->spec.text,
	        .pid = dp_target_pid(t),
	        .comm = dp_target_comm(t),
	        .inner_pid = dp_target_inner_pid(t),
	        .tactic = "standing",
	        .tag = retired ? dp_tag_name(DP_TAG_FOREIGN) : NULL,
	        .reason = retired ? "another tool patched its place" : NULL,
	        .retired = retired,
	        .addr = dp_resident_site(s, (unsigned)i),
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
			dp_resident_loss(r->group[k].left->resident, i, &l);
			sum += dp_loss_sum(&l);
		}
	return sum;
}

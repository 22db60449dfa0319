/* SPDX-License-Identifier: MIT */
/* What came of a recording. Losses are counted from when the probes were left: what was overwritten before belongs to the story.
 */
#include "cli/run/recording/recording.h"
#include "output/output.h"

#include <stdlib.h>

static void fill(const struct dp_recording *r, const struct dp_recording_group *g, size_t i, struct dp_summary_probe *ret)
{
	struct dp_resident *s = g->left->standing;
	const size_t class = g->first + i;
	const bool retired = dp_resident_retired(s, (unsigned)i);
	struct dp_loss l = {0};
	dp_resident_loss(s, (unsigned)i, &l);
	l.damaged += r->damaged[class];
	*ret = (struct dp_summary_probe){
	        .name = r->classes.probe[class].name,
	        .spec = r->classes.probe[class].spec.text,
	        .pid = dp_target_pid(r->left->target),
	        .tactic = "standing",
	        .tag = retired ? dp_tag_name(DP_TAG_FOREIGN) : NULL,
	        .reason = retired ? "another tool patched its place" : NULL,
	        .retired = retired,
	        .addr = dp_resident_site(s, (unsigned)i),
	        .recorded = r->recorded[class],
	        .lost = l,
	};
}

void dp_recording_summary(struct dp_recording *r)
{
	dp_auto_free struct dp_summary_probe *probe = calloc(r->classes.nprobes + 1, sizeof(*probe));
	struct dp_summary sum = {
	        .probe = probe,
	        .n = r->classes.nprobes,
	        .record_dir = r->out.record_dir,
	        .ended_by = r->ended_by,
	};
	if (!probe)
		return;
	for (size_t k = 0; k < r->ngroups; k++)
		for (size_t i = 0; i < r->group[k].left->manifest.n; i++)
			fill(r, &r->group[k], i, &probe[r->group[k].first + i]);
	if (r->options->format == DP_FORMAT_JSON)
		dp_summary_json(&sum, r->out.file);
	else
		dp_summary_text(&sum, stderr, r->out.color && r->out.to_stderr);
}

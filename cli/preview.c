/* SPDX-License-Identifier: MIT */
#include "cli/preview.h"

#include <stdlib.h>
#include <string.h>

/* A later request may have made the planner place an earlier one in another way. */
static void update_places(struct dp_session *s, const struct dp_preview *p)
{
	for (size_t k = 0; k < p->nplans; k++)
		if (p->plan[k].probe < s->options->nprobes)
			s->place[p->plan[k].probe].plan = p->plan[k];
}

struct dp_error *dp_preview_take(struct dp_session *s, struct dp_planner *planner)
{
	const struct dp_plan *plans;
	const struct dp_extent *extents;
	struct dp_preview *p = calloc(1, sizeof(*p));
	const size_t n = p ? dp_planner_plans(planner, &plans) : 0;
	if (!p || !(p->plan = calloc(n + 1, sizeof(*p->plan)))) {
		dp_preview_destroy(p);
		return dp_error(DP_TAG_NOMEM, "out of memory for the plan");
	}
	s->preview = p;
	if (n)
		memcpy(p->plan, plans, n * sizeof(*plans));
	p->nplans = n;
	p->extents = dp_planner_extents(planner, &extents);
	for (size_t i = 0; i < p->extents; i++)
		p->extent_bytes += extents[i].n;
	update_places(s, p);
	return dp_target_footprint(s->target, (unsigned)s->options->nprobes, &p->own);
}

struct dp_preview *dp_preview_destroy(struct dp_preview *preview)
{
	if (preview)
		free(preview->plan);
	free(preview);
	return NULL;
}

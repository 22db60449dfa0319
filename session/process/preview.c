/* SPDX-License-Identifier: MIT */
#include "session/process/preview.h"

#include <stdlib.h>
#include <string.h>

#define SHORT_REACH 160u /* bytes: the reach of a short jump, and the instruction around its target */

/* The planner may have changed earlier plans for later requests. */
static void update_places(struct dp_session *s, const struct dp_preview *p)
{
	for (size_t k = 0; k < p->nplans; k++)
		if (p->plan[k].probe < s->trace->nprobes)
			s->place[p->plan[k].probe].plan = p->plan[k];
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = ((const struct dp_neighbour *)a)->plan->site, y = ((const struct dp_neighbour *)b)->plan->site;
	return x < y ? -1 : x > y;
}

static struct dp_error *find_neighbours(struct dp_preview *p)
{
	p->neighbour = calloc(p->nplans + 1, sizeof(*p->neighbour));
	if (!p->neighbour)
		return dp_error_nomem();
	for (size_t k = 0; k < p->nplans; k++)
		if (p->plan[k].probe == DP_NO_PROBE)
			p->neighbour[p->nneighbours++].plan = &p->plan[k];
	if (p->nneighbours)
		qsort(p->neighbour, p->nneighbours, sizeof(*p->neighbour), compare);
	return NULL;
}

/* The target of the short jump at a site; 0 if there is none. */
static uint64_t short_target(const struct dp_plan *p)
{
	return p->new_bytes[0] == 0xeb ? p->site + 2 + (uint64_t)(int64_t)(int8_t)p->new_bytes[1] : 0;
}

static bool was_evicted_for(const struct dp_plan *e, const struct dp_plan *p)
{
	const uint64_t to = short_target(p);
	const bool relied = e->site < p->site + p->len && p->site < e->site + e->changed;
	return relied || (to >= e->site && to < e->site + sizeof(e->old_bytes));
}

/* The first neighbour within reach. */
static size_t first_near(const struct dp_preview *p, uint64_t site)
{
	size_t lo = 0, hi = p->nneighbours;
	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		if (p->neighbour[mid].plan->site + SHORT_REACH < site)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct dp_plan *dp_preview_evicted(struct dp_preview *preview, const struct dp_plan *plan, size_t *i)
{
	if (plan->tactic != DP_TACTIC_EVICT)
		return NULL;
	if (!*i)
		*i = first_near(preview, plan->site);
	for (; *i < preview->nneighbours && preview->neighbour[*i].plan->site <= plan->site + SHORT_REACH; ++*i) {
		struct dp_neighbour *n = &preview->neighbour[*i];
		if (!was_evicted_for(n->plan, plan))
			continue;
		n->evicted = true;
		++*i;
		return n->plan;
	}
	return NULL;
}

struct dp_error *dp_preview_make(struct dp_session *s, struct dp_planner *planner)
{
	const struct dp_plan *plans;
	const struct dp_extent *extents;
	struct dp_preview *p = calloc(1, sizeof(*p));
	const size_t n = p ? dp_planner_plans(planner, &plans) : 0;
	if (!p || !(p->plan = calloc(n + 1, sizeof(*p->plan)))) {
		dp_preview_destroy(p);
		return dp_error_nomem();
	}
	s->preview = p;
	if (n)
		memcpy(p->plan, plans, n * sizeof(*plans));
	p->nplans = n;
	DP_TRY(find_neighbours(p));
	p->extents = dp_planner_extents(planner, &extents);
	for (size_t i = 0; i < p->extents; i++)
		p->extent_bytes += extents[i].n;
	update_places(s, p);
	return dp_target_footprint(s->target, (unsigned)s->trace->nprobes, &p->own);
}

struct dp_preview *dp_preview_destroy(struct dp_preview *preview)
{
	if (preview) {
		free(preview->plan);
		free(preview->neighbour);
	}
	free(preview);
	return NULL;
}

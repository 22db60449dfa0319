/* SPDX-License-Identifier: MIT */
/*
 * Removes probes of an earlier tool: some of them, whose stubs stay for threads inside, or the last ones, and then everything. A
 * kill in between leaves a group with fewer probes, or with none, which the next tool removes.
 */
#include "injector/patch/remove.h"
#include "injector/resident/resident.h"

#include "base/cleanup.h"

#include <stdlib.h>

static bool wanted(const struct dp_placed *p, const bool *remove)
{
	return p->probe != DP_NO_PROBE && (!remove || remove[p->probe]);
}

/* Sites that others changed may still lead into our stubs in unknown ways: as long as one is left, everything stays. */
static bool leaves_none(const struct dp_resident *s, const bool *remove)
{
	for (size_t i = 0; i < s->in.nplaced; i++) {
		const struct dp_placed *p = &s->in.placed[i];
		if (p->probe != DP_NO_PROBE && p->state == DP_SITE_PLANNED && !wanted(p, remove))
			return false;
	}
	return true;
}

/* A probe whose bytes others rely on is disabled; it is removed with them. */
static struct dp_error *restore_some(struct dp_resident *s, const bool *chosen, struct dp_remove_report *report)
{
	static const uint32_t shut;
	DP_TRY(dp_installation_restore(s->target, &s->in, chosen, report));
	for (size_t i = 0; i < s->in.nplaced; i++) {
		const struct dp_placed *p = &s->in.placed[i];
		if (p->state != DP_SITE_WAITING || p->probe == DP_NO_PROBE)
			continue;
		report->waiting++;
		if (s->control.gates_offset)
			DP_TRY(dp_resident_put(s, s->control.gates_offset + p->probe * sizeof(shut), &shut, sizeof(shut)));
	}
	return NULL;
}

static struct dp_error *remove_some(struct dp_resident *s, const bool *remove, struct dp_remove_report *report)
{
	dp_auto_free bool *chosen = calloc(s->in.nplaced + 1, sizeof(*chosen));
	if (!chosen)
		return dp_error_nomem();
	bool any = false;
	for (size_t i = 0; i < s->in.nplaced; i++) {
		chosen[i] = wanted(&s->in.placed[i], remove);
		any |= chosen[i] && s->in.placed[i].state != DP_SITE_RESTORED;
	}
	return any ? restore_some(s, chosen, report) : NULL;
}

static struct dp_error *remove_all(struct dp_resident *s, struct dp_remove_report *report)
{
	DP_TRY(dp_installation_remove(s->target, &s->in, report));
	s->unmapped = !report->left_bytes && !report->left_sites;
	return NULL;
}

struct dp_error *dp_resident_remove(struct dp_resident *s, const bool *remove, struct dp_remove_report *report)
{
	*report = (struct dp_remove_report){0};
	if (s->unmapped)
		return NULL;
	return leaves_none(s, remove) ? remove_all(s, report) : remove_some(s, remove, report);
}

/* SPDX-License-Identifier: MIT */
/* remove and detach: restore the text. Events of LTTng are parked: its sink stays in the process, idle. */
#include "cli/commands/command.h"
#include "cli/commands/residents_each.h"

#include <inttypes.h>
#include <stdlib.h>

static struct dp_error *park(struct dp_residents *left, const struct dp_residents_group *g)
{
	dp_auto_free uint64_t *events = calloc(g->manifest.n + 1, sizeof(*events));
	size_t n = 0;
	if (!events)
		return dp_error_nomem();
	for (size_t i = 0; i < g->manifest.n; i++)
		if (g->chosen[i] && g->manifest.probe[i].event)
			events[n++] = g->manifest.probe[i].event;
	return n ? dp_target_sink_park(left->target, events, n) : NULL;
}

static void report(const struct dp_residents *left, const struct dp_remove_report *r)
{
	if (r->left_sites || r->left_bytes)
		fprintf(stderr, "dynprobe: could not remove everything from %d: %zu sites, %zu bytes are left: %s\n",
		        dp_target_pid(left->target), r->left_sites, r->left_bytes, r->why);
}

static bool any_chosen(const struct dp_residents_group *g)
{
	for (size_t i = 0; i < g->manifest.n; i++)
		if (g->chosen[i])
			return true;
	return false;
}

/* After this the resident group may be gone. */
static struct dp_error *remove_group(struct dp_residents *left, struct dp_residents_group *g, const bool *which,
                                     struct dp_remove_report *sum)
{
	struct dp_remove_report r = {0};
	const bool sink = dp_resident_sink(g->resident) != 0;
	DP_TRY(dp_resident_remove(g->resident, which, &r));
	report(left, &r);
	if (r.pause_ns > sum->pause_ns)
		sum->pause_ns = r.pause_ns;
	return sink ? park(left, g) : NULL;
}

static void say_removed(const struct dp_residents *left, const char *names, const struct dp_remove_report *sum)
{
	fprintf(stderr, "dynprobe: removed from %d (%s): %s   (longest pause %" PRIu64 " us)\n", dp_target_pid(left->target),
	        dp_target_comm(left->target), names ? names : "", sum->pause_ns / 1000);
}

static struct dp_error *remove_named(const struct dp_options *options, struct dp_residents *left)
{
	struct dp_remove_report sum = {0};
	DP_TRY(dp_residents_choose(left, options->name, options->nnames));
	dp_auto_free char *names = dp_residents_chosen(left);
	for (size_t k = 0; k < left->n; k++)
		if (any_chosen(&left->group[k]))
			DP_TRY(remove_group(left, &left->group[k], left->group[k].chosen, &sum));
	say_removed(left, names, &sum);
	return NULL;
}

/* Works even if the manifest is damaged and names are unknown. */
static struct dp_error *remove_all(const struct dp_options *options, struct dp_residents *left)
{
	struct dp_remove_report sum = {0};
	(void)options;
	if (!left->n) {
		fprintf(stderr, "dynprobe: no resident probes in %d (%s)\n", dp_target_pid(left->target),
		        dp_target_comm(left->target));
		return NULL;
	}
	for (size_t k = 0; k < left->n; k++)
		for (size_t i = 0; i < left->group[k].manifest.n; i++)
			left->group[k].chosen[i] = dp_residents_stands(&left->group[k], i);
	dp_auto_free char *names = dp_residents_chosen(left);
	for (size_t k = 0; k < left->n; k++)
		DP_TRY(remove_group(left, &left->group[k], NULL, &sum));
	say_removed(left, names, &sum);
	return NULL;
}

int dp_command_remove(const struct dp_options *options)
{
	return dp_residents_each(options, false, remove_named);
}

int dp_command_detach(const struct dp_options *options)
{
	return dp_residents_each(options, false, remove_all);
}

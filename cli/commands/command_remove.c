/* SPDX-License-Identifier: MIT */
/* remove and detach: restore the text. Events of LTTng are parked: its sink stays in the process, idle. */
#include "base/duration.h"
#include "cli/commands/command.h"
#include "cli/commands/residents_each.h"
#include "output/output.h"

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
		fprintf(stderr, "dynprobe: could not remove everything from %d: %zu site%s, %zu bytes are left: %s\n",
		        dp_target_pid(left->target), r->left_sites, r->left_sites == 1 ? "" : "s", r->left_bytes, r->why);
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
	char pause[DP_DURATION_TEXT];
	fprintf(stderr, "dynprobe: removed from %d (%s): %s   (longest pause %s)\n", dp_target_pid(left->target),
	        dp_target_comm(left->target), names ? names : "", dp_duration(sum->pause_ns, pause));
}

/* What opening the process has removed. True if there was anything. */
static bool say_leftovers(const struct dp_residents *left)
{
	size_t n;
	const struct dp_leftover *l = dp_target_leftovers(left->target, &n);
	for (size_t i = 0; i < n; i++) {
		char origin[DP_LEFTOVER_SIZE], extent[DP_LEFTOVER_SIZE];
		dp_leftover_origin(&l[i], origin);
		dp_leftover_extent(&l[i], extent);
		fprintf(stderr, "dynprobe: removed from %d (%s) the leftover of %s: %s\n", dp_target_pid(left->target),
		        dp_target_comm(left->target), origin, extent);
	}
	return n;
}

/* fork() copies patched text: removes it from the children as well. */
static void clean_children(struct dp_residents *left)
{
	struct dp_children c;
	dp_target_clean_children(left->target, true, NULL, NULL, &c);
	if (c.cleaned)
		fprintf(stderr, "dynprobe: removed from %u fork %s of %d (%s), too\n", c.cleaned,
		        c.cleaned == 1 ? "child" : "children", dp_target_pid(left->target), dp_target_comm(left->target));
	for (size_t i = 0; i < c.nleft; i++)
		fprintf(stderr, "dynprobe: fork child %d (%s) still has the probes of %d: %s [%s]\n", c.left[i].pid,
		        c.left[i].comm, dp_target_pid(left->target), c.left[i].why->message, dp_tag_name(c.left[i].why->tag));
	left->partial |= c.nleft;
	dp_children_fini(&c);
}

static struct dp_error *remove_named(const struct dp_options *options, struct dp_residents *left)
{
	struct dp_remove_report sum = {0};
	const bool leftovers = say_leftovers(left);
	if (!left->n && leftovers) { /* whose names are its parent's; none of them is left */
		clean_children(left);
		return NULL;
	}
	DP_TRY(dp_residents_choose(left, options->name, options->nnames));
	dp_auto_free char *names = dp_residents_chosen(left);
	for (size_t k = 0; k < left->n; k++)
		if (any_chosen(&left->group[k]))
			DP_TRY(remove_group(left, &left->group[k], left->group[k].chosen, &sum));
	say_removed(left, names, &sum);
	clean_children(left);
	return NULL;
}

/* Works even if the manifest is damaged and names are unknown. */
static struct dp_error *remove_all(const struct dp_options *options, struct dp_residents *left)
{
	struct dp_remove_report sum = {0};
	(void)options;
	const bool leftovers = say_leftovers(left);
	if (!left->n) {
		if (!leftovers)
			fprintf(stderr, "dynprobe: no resident probes in %d (%s)\n", dp_target_pid(left->target),
			        dp_target_comm(left->target));
		clean_children(left);
		return NULL;
	}
	for (size_t k = 0; k < left->n; k++)
		for (size_t i = 0; i < left->group[k].manifest.n; i++)
			left->group[k].chosen[i] = dp_residents_stands(&left->group[k], i);
	dp_auto_free char *names = dp_residents_chosen(left);
	for (size_t k = 0; k < left->n; k++)
		DP_TRY(remove_group(left, &left->group[k], NULL, &sum));
	say_removed(left, names, &sum);
	clean_children(left);
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

/* SPDX-License-Identifier: MIT */
/*
 * enable and disable. A probe's gate is a word that its stub tests: no thread is stopped, no code changes. With the LTTng sink,
 * too: LTTng's own rules do not change, and an event needs both.
 */
#include "cli/commands/command.h"
#include "cli/commands/residents_each.h"

static struct dp_error *set_group(struct dp_residents_group *g, bool on)
{
	for (size_t i = 0; i < g->manifest.n; i++)
		if (g->chosen[i])
			DP_TRY(dp_resident_enable(g->resident, (unsigned)i, on));
	return NULL;
}

static struct dp_error *set_all(const struct dp_options *options, struct dp_residents *left, bool on)
{
	DP_TRY(dp_residents_choose(left, options->name, options->nnames));
	for (size_t k = 0; k < left->n; k++)
		DP_TRY(set_group(&left->group[k], on));
	dp_auto_free char *names = dp_residents_chosen(left);
	fprintf(stderr, "dynprobe: %s in %d (%s): %s\n", on ? "enabled" : "disabled", dp_target_pid(left->target),
	        dp_target_comm(left->target), names ? names : "");
	return NULL;
}

static struct dp_error *enable(const struct dp_options *options, struct dp_residents *left)
{
	return set_all(options, left, true);
}

static struct dp_error *disable(const struct dp_options *options, struct dp_residents *left)
{
	return set_all(options, left, false);
}

int dp_command_enable(const struct dp_options *options)
{
	return dp_residents_each(options, true, enable);
}

int dp_command_disable(const struct dp_options *options)
{
	return dp_residents_each(options, true, disable);
}

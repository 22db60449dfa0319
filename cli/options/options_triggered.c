/* SPDX-License-Identifier: MIT */
/* --snapshot and what belongs to it. */
#include "cli/options/numbers.h"
#include "cli/options/options_table.h"

#include <string.h>

struct dp_error *dp_take_snapshot(struct dp_parser *p, const char *arg)
{
	(void)arg;
	p->o.trace.snapshots.on = p->probes.snapshot = true;
	return NULL;
}

struct dp_error *dp_take_max_snapshots(struct dp_parser *p, const char *arg)
{
	uint64_t n;
	DP_TRY(dp_number_parse("--max-snapshots", arg, &n));
	if (!n || n > UINT32_MAX)
		return dp_error(DP_TAG_USAGE, "--max-snapshots takes a number of at least 1");
	p->o.trace.snapshots.most = (uint32_t)n;
	return NULL;
}

struct dp_error *dp_take_snapshot_interval(struct dp_parser *p, const char *arg)
{
	p->o.trace.snapshots.interval_given = true;
	return dp_duration_parse("--snapshot-interval", arg, &p->o.trace.snapshots.interval_ns);
}

/* Was anything said of snapshots that is not about probes? */
static bool describes(const struct dp_snapshot_args *a)
{
	static const struct dp_limits usual;
	const struct dp_take_options *t = &a->take;
	return t->still.mode || t->still.max_bytes || memcmp(&t->limits, &usual, sizeof(usual)) || t->environ || t->tls ||
	       t->application || t->module_timeout_ns || a->globals.n || a->load.n || a->classifiers.n || a->modules.n ||
	       a->module_dirs.n || a->module_options.n || a->lua_allow.n || a->npairs;
}

struct dp_error *dp_snapshots_check(enum dp_verb verb, struct dp_options *o)
{
	struct dp_snapshots_asked *a = &o->trace.snapshots;
	const char *lone = a->most                   ? "--max-snapshots"
	                   : a->interval_given       ? "--snapshot-interval"
	                   : describes(&o->snapshot) ? "what describes a snapshot (--mode, --global, --module-load, ...)"
	                                             : NULL;
	if (!a->on)
		return lone ? dp_error(DP_TAG_USAGE, "%s is for probes with --snapshot", lone) : NULL;
	if (verb == DP_VERB_ATTACH)
		return dp_error(DP_TAG_USAGE,
		                "snapshots are taken as long as dynprobe runs: probes that stay (attach) record events");
	if (o->trace.pending)
		return dp_error(DP_TAG_USAGE, "--snapshot and --pending exclude each other");
	if (o->trace.asked.what)
		return dp_error(DP_TAG_USAGE,
		                "a run that answers (--count, --hist, ...) records no events, and takes no snapshots");
	if (!a->most)
		a->most = 1;
	if (!a->interval_given)
		a->interval_ns = DP_SNAPSHOT_INTERVAL_NS;
	return NULL;
}

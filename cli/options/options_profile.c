/* SPDX-License-Identifier: MIT */
#include "cli/options/options_table.h"

#include <string.h>

/* Times are what it is about: --sum duration says the same. */
static bool sums_waits(const struct dp_options *o)
{
	const struct dp_asked *a = &o->trace.asked;
	return o->off_cpu && a->nparts == 1 && a->what == DP_AGG_SUM && !a->part[0].average && dp_agg_is_ns(&a->part[0]);
}

static void ask(struct dp_options *o)
{
	struct dp_asked *a = &o->trace.asked;
	if (!o->off_cpu) {
		dp_asked_count(a);
		return;
	}
	a->part[0] = (struct dp_agg_part){.what = DP_AGG_SUM, .value = "duration"};
	a->nparts = 1;
	a->what = DP_AGG_SUM;
	a->rank = DP_RANK_SUM;
}

struct dp_error *dp_profile_check(struct dp_options *o)
{
	struct dp_asked *a = &o->trace.asked;
	const char *other =
	        o->trace.nprobes                            ? "probes"
	        : a->what & ~DP_AGG_COUNT && !sums_waits(o) ? "--hist, --sum, --avg, --min and --max"
	        : a->slower_ns                              ? "--slower-than"
	        : a->interval_ns                            ? "--interval"
	        : a->by && strcmp(a->by, "backtrace") && !dp_asked_is_by(a, DP_KEY_PID)
	                ? "--by with anything but backtrace and pid"
	        : o->trace.pending       ? "--pending"
	        : o->trace.follow        ? "--follow"
	        : o->trace.dry_run       ? "--dry-run"
	        : o->trace.except.n      ? "-x"
	        : o->trace.tactics       ? "--tactic"
	        : o->trace.no_trap       ? "--no-trap"
	        : o->trace.allow_seccomp ? "--allow-seccomp"
	        : o->trace.ring_size     ? "--buffer-size"
	        : o->trace.max_memory    ? "--max-memory"
	        : o->trace.block_ns      ? "--on-full"
	        : o->trace.overwrite     ? "--overwrite"
	        : o->trace.sink == DP_SINK_LTTNG || o->trace.session || o->trace.set_url || o->trace.live_us || o->trace.filter
	                ? "events of LTTng"
	                : NULL;
	DP_TRY(dp_flame_check(o));
	if (other)
		return dp_error(DP_TAG_USAGE, "--profile and %s exclude each other", other);
	if (a->folded && dp_asked_is_by(a, DP_KEY_PID))
		return dp_error(DP_TAG_USAGE, "--folded needs stacks: --by pid has none");
	if (a->by || a->folded || a->top || (o->off_cpu && a->what))
		ask(o);
	if (!a->what)
		return NULL;
	if (o->format > DP_FORMAT_JSON || o->record)
		return dp_error(DP_TAG_USAGE, "a table of stacks records no events: use neither --record nor -f ctf or perfetto");
	if (!a->by)
		DP_TRY(dp_asked_by(a, "backtrace"));
	o->no_record = true;
	return NULL;
}

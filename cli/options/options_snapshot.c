/* SPDX-License-Identifier: MIT */
/* Options of snapshots: those with rules of their own, what excludes what, and which parts the verb show shows. */
#include "cli/options/options_table.h"

#include <stdlib.h>
#include <string.h>

/* A copy of text[0..n) that lives as long as the options. */
static struct dp_error *cut(struct dp_snapshot_args *a, const char *text, size_t n, const char **ret)
{
	char **grown = realloc(a->owned, (a->nowned + 1) * sizeof(*grown)), *copy = strndup(text, n);
	if (grown)
		a->owned = grown;
	if (!grown || !copy) {
		free(copy);
		return dp_error_nomem();
	}
	*ret = a->owned[a->nowned++] = copy;
	return NULL;
}

struct dp_error *dp_option_lua_allow(struct dp_parser *p, const char *arg)
{
	for (const char *from = arg;; from++) {
		const size_t n = strcspn(from, ",");
		const char *word;
		DP_TRY(cut(&p->o.snapshot, from, n, &word));
		DP_TRY(dp_option_names(p, word));
		from += n;
		if (!*from)
			return NULL;
	}
}

/* k:v[,k:v...]; a value may contain colons, but no commas. */
struct dp_error *dp_option_kv(struct dp_parser *p, const char *arg)
{
	struct dp_snapshot_args *a = &p->o.snapshot;
	for (const char *from = arg;; from++) {
		const size_t n = strcspn(from, ","), key = strcspn(from, ":,");
		struct dp_snap_capture_pair *grown = realloc(a->pair, (a->npairs + 1) * sizeof(*grown));
		if (!grown)
			return dp_error_nomem();
		a->pair = grown;
		if (!key || key >= n)
			return dp_error(DP_TAG_USAGE, "--kv '%s' is not KEY:VALUE[,KEY:VALUE...]", arg);
		DP_TRY(cut(a, from, key, &grown[a->npairs].key));
		DP_TRY(cut(a, from + key + 1, n - key - 1, &grown[a->npairs].value));
		a->npairs++;
		from += n;
		if (!*from)
			return NULL;
	}
}

void dp_snapshot_args_finish(struct dp_snapshot_args *a)
{
	struct dp_snap_capture_options *t = &a->take;
	t->globals = a->globals.item;
	t->load = a->load.item;
	t->classifiers = a->classifiers.item;
	t->modules = a->modules.item;
	t->module_dirs = a->module_dirs.item;
	t->module_options = a->module_options.item;
	t->lua_allow = a->lua_allow.item;
	t->pairs = a->pair;
	t->npairs = a->npairs;
	t->threads = a->threads.item;
	t->nthreads = a->threads.n;
	t->faults = a->faults.item;
	t->nfaults = a->faults.n;
	t->limits.fault_depth = t->limits.depth;
	t->still.max_bytes = t->limits.bytes;
}

void dp_snapshot_args_fini(struct dp_snapshot_args *a)
{
	const struct dp_word_list *lists[] = {&a->globals,     &a->load,           &a->classifiers, &a->modules,
	                                      &a->module_dirs, &a->module_options, &a->lua_allow};
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		free(lists[i]->item);
	for (size_t i = 0; i < a->nowned; i++)
		free(a->owned[i]);
	free(a->owned);
	free(a->pair);
	free(a->threads.item);
	free(a->faults.item);
	*a = (struct dp_snapshot_args){0};
}

/* ---- --snapshot: when a probe hits -------------------------------------------------------------------------------- */

/* Is there an option that describes snapshots? */
static bool describes(const struct dp_snapshot_args *a)
{
	static const struct dp_limits usual;
	const struct dp_snap_capture_options *t = &a->take;
	return t->still.mode || t->still.max_bytes || memcmp(&t->limits, &usual, sizeof(usual)) || t->environ || t->tls ||
	       t->application || t->module_timeout_ns || a->globals.n || a->load.n || a->classifiers.n || a->modules.n ||
	       a->module_dirs.n || a->module_options.n || a->lua_allow.n || a->npairs;
}

struct dp_error *dp_snapshots_check(enum dp_verb verb, struct dp_options *o)
{
	struct dp_snapshots_asked *a = &o->trace.snapshots;
	const char *lone = a->most          ? "--max-snapshots"
	                   : a->interval_ns ? "--snapshot-interval"
	                   : describes(&o->snapshot)
	                           ? "an option that describes a snapshot (--mode, --global, --module-load, ...)"
	                           : NULL;
	if (!a->on)
		return lone ? dp_error(DP_TAG_USAGE, "%s is for probes with --snapshot", lone) : NULL;
	if (verb == DP_VERB_ATTACH)
		return dp_error(DP_TAG_USAGE, "resident probes (attach) take no snapshots: run --snapshot without attach");
	if (o->trace.pending)
		return dp_error(DP_TAG_USAGE, "--snapshot and --pending exclude each other");
	if (o->trace.asked.what)
		return dp_error(DP_TAG_USAGE, "aggregations (--count, --hist, ...) and --snapshot exclude each other");
	if (!a->most)
		a->most = 1;
	if (!a->interval_ns)
		a->interval_ns = DP_SNAPSHOT_INTERVAL_NS;
	return NULL;
}

/* ---- show and report ---------------------------------------------------------------------------------------------- */

struct dp_error *dp_option_show_frame(struct dp_parser *p, const char *arg)
{
	if (strcmp(arg, "0")) /* the innermost */
		return dp_option_number(p, arg);
	p->o.show.frame = 0;
	return NULL;
}

struct dp_error *dp_option_show_var(struct dp_parser *p, const char *arg)
{
	if (p->o.show.nvars == DP_SHOW_VARS)
		return dp_error(DP_TAG_USAGE, "more than %u variables at once (--var)", DP_SHOW_VARS);
	p->o.show.var[p->o.show.nvars++] = arg;
	return NULL;
}

struct dp_error *dp_option_show_all(struct dp_parser *p, const char *arg)
{
	(void)arg;
	p->o.show.registers = p->o.show.maps = p->o.show.files = p->o.show.limits = true;
	p->o.show.ungrouped = p->o.show.unfolded = true;
	return NULL;
}

static struct dp_error *check_file(const struct dp_options *o, const char *verb)
{
	if (!o->nnames)
		return dp_error(DP_TAG_USAGE, "which %s? Give its file; see dynprobe %s --help",
		                strcmp(verb, "report") ? "snapshot" : "snapshot or trace", verb);
	if (o->nnames > 2) /* of a core file also its executable */
		return dp_error(DP_TAG_USAGE, "unexpected argument '%s': dynprobe %s takes one file at a time", o->name[2], verb);
	return NULL;
}

struct dp_error *dp_report_check(const struct dp_options *o)
{
	return check_file(o, "report");
}

struct dp_error *dp_show_check(const struct dp_options *o)
{
	const bool part = o->show.thread || o->show.frame >= 0 || o->show.nvars;
	DP_TRY(check_file(o, "show"));
	if (o->format == DP_FORMAT_JSON && part)
		return dp_error(DP_TAG_USAGE,
		                "JSON shows the whole snapshot: it and --thread, --frame or --var exclude each other");
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/* Aggregations instead of events; these options apply to all probes of the run. The verb view takes them for a recorded trace. */
#include "cli/options/numbers.h"
#include "cli/options/options_table.h"
#include "output/flame/flame.h"
#include "trampoline/trampoline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Counts come with every other aggregation. */
static void drop_count(struct dp_asked *a)
{
	if (a->nparts == 1 && a->part[0].what == DP_AGG_COUNT)
		a->nparts = 0;
}

static bool is_same(const struct dp_agg_part *a, const struct dp_agg_part *b)
{
	const bool statistics = dp_agg_is_statistics(a) && dp_agg_is_statistics(b);
	return (statistics || a->what == b->what) && !strcmp(a->value, b->value) && a->low == b->low && a->step == b->step &&
	       a->buckets == b->buckets;
}

/* Those of one expression (--sum, --avg, --min, --max) are one part. */
static struct dp_error *ask(struct dp_parser *p, enum dp_aggs_rank rank, const struct dp_agg_part *part)
{
	struct dp_asked *a = &p->o.trace.asked;
	a->rank = a->what ? a->rank : rank;
	a->what |= part->what;
	drop_count(a);
	for (size_t i = 0; i < a->nparts; i++) {
		if (!is_same(&a->part[i], part))
			continue;
		a->part[i].what |= part->what;
		a->part[i].average |= part->average;
		return NULL;
	}
	if (a->nparts == DP_AGG_PARTS_MOST)
		return dp_error(DP_TAG_USAGE,
		                "%s '%s': a run has at most %u aggregations (--sum, --avg, --min and --max of one "
		                "expression are one)",
		                p->option, part->value, DP_AGG_PARTS_MOST);
	a->part[a->nparts++] = *part;
	return NULL;
}

/* --count, --sum, --avg, --min, --max: their rows say which is the rank. */
struct dp_error *dp_option_aggregation(struct dp_parser *p, const char *arg)
{
	static const unsigned what[] = {[DP_RANK_HITS] = DP_AGG_COUNT,
	                                [DP_RANK_SUM] = DP_AGG_SUM,
	                                [DP_RANK_AVERAGE] = DP_AGG_SUM,
	                                [DP_RANK_MIN] = DP_AGG_MIN,
	                                [DP_RANK_MAX] = DP_AGG_MAX};
	const enum dp_aggs_rank rank = (enum dp_aggs_rank)p->row->value;
	const struct dp_agg_part part = {.what = what[rank], .average = rank == DP_RANK_AVERAGE, .value = arg};
	if (rank != DP_RANK_HITS)
		return ask(p, rank, &part);
	if (!p->o.trace.asked.what)
		p->o.trace.asked.rank = rank;
	dp_asked_count(&p->o.trace.asked);
	return NULL;
}

/* ---- histograms ---------------------------------------------------------------------------------------------------------- */

/* The last comma before `end` outside parentheses, brackets and quotes, or NULL. */
static char *last_comma(char *text, const char *end)
{
	char *found = NULL;
	int depth = 0;
	for (char *c = text, quote = 0; c < end; c++) {
		if (quote)
			quote = *c == quote ? 0 : quote;
		else if (*c == '"' || *c == '\'')
			quote = *c;
		else if (strchr("([", *c))
			depth++;
		else if (strchr(")]", *c))
			depth--;
		else if (*c == ',' && !depth)
			found = c;
	}
	return found;
}

/* A whole number, or a time (10us): that is ns. */
static bool whole_number(const char *text, int64_t *ret)
{
	char *end;
	uint64_t ns;
	errno = 0;
	*ret = strtoll(text, &end, 0);
	if (end != text && !end[strspn(end, " ")] && !errno)
		return true;
	while (*text == ' ')
		text++;
	if (!*text || strchr("0123456789. ", text[strlen(text) - 1])) /* no unit */
		return false;
	struct dp_error *err = dp_duration_parse("--hist", text, &ns);
	const bool good = !err && ns <= INT64_MAX;
	dp_error_destroy(err);
	*ret = good ? (int64_t)ns : 0;
	return good;
}

static struct dp_error *linear(struct dp_agg_part *a, const char *arg, char *const comma[3])
{
	int64_t n[3];
	uint64_t range;
	for (int i = 0; i < 3; i++) {
		if (!whole_number(comma[i] + 1, &n[i]))
			return dp_error(DP_TAG_USAGE,
			                "--hist '%s': LOW,HIGH,STEP after the expression must be whole numbers, or times (10us)",
			                arg);
		*comma[i] = 0;
	}
	if (n[1] <= n[0] || n[2] <= 0)
		return dp_error(DP_TAG_USAGE, "--hist '%s': HIGH must be above LOW, and STEP above 0", arg);
	range = (uint64_t)n[1] - (uint64_t)n[0];
	a->low = n[0];
	a->step = (uint64_t)n[2];
	if (range / a->step + (range % a->step != 0) > DP_AGG_LINEAR_MAX)
		return dp_error(DP_TAG_USAGE, "--hist '%s' has more than %u buckets; use a greater STEP", arg, DP_AGG_LINEAR_MAX);
	a->buckets = (uint32_t)(range / a->step + (range % a->step != 0));
	return NULL;
}

static struct dp_error *ask_linear(struct dp_parser *p, const char *arg, char *text, char *const comma[3])
{
	struct dp_agg_part part = {.what = DP_AGG_LINEAR, .value = text};
	struct dp_asked *a = &p->o.trace.asked;
	for (int i = 1; i < 3; i++) /* whole_number() stops there */
		*comma[i] = 0;
	DP_TRY(linear(&part, arg, comma));
	DP_TRY(ask(p, DP_RANK_HITS, &part));
	if (a->part[a->nparts - 1].value == text)
		a->linear[a->nparts - 1] = text;
	else
		free(text); /* it was asked for before */
	return NULL;
}

struct dp_error *dp_option_hist(struct dp_parser *p, const char *arg)
{
	struct dp_agg_part part = {.value = arg};
	char *comma[3], *text = strdup(arg);
	if (!text)
		return dp_error_nomem();
	part.what = dp_agg_is_ns(&part) ? DP_AGG_DECIMAL : DP_AGG_LOG2;
	char *end = text + strlen(text);
	for (int i = 2; i >= 0; i--) {
		comma[i] = end ? last_comma(text, end) : NULL;
		end = comma[i];
	}
	struct dp_error *err = comma[0] ? ask_linear(p, arg, text, comma) : ask(p, DP_RANK_HITS, &part);
	if (err || !comma[0])
		free(text);
	return err;
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------ */

struct dp_error *dp_option_by(struct dp_parser *p, const char *arg)
{
	return dp_asked_by(&p->o.trace.asked, arg);
}

struct dp_error *dp_aggs_check_asked(const struct dp_asked *a)
{
	if (a->what && a->folded && !dp_asked_is_by(a, DP_KEY_STACK))
		return dp_error(DP_TAG_USAGE, "--folded is for --by backtrace");
	if (a->folded && a->nparts > 1)
		return dp_error(DP_TAG_USAGE, "--folded counts hits: use it with --count alone");
	const char *lone = a->by            ? "--by"
	                   : a->interval_ns ? "--interval"
	                   : a->top         ? "--top"
	                   : a->folded      ? "--folded"
	                   : a->rate        ? "--rate"
	                                    : NULL;
	if (a->what || !lone)
		return NULL;
	return dp_error(DP_TAG_USAGE, "%s is for aggregations: also give --count, --hist, --sum, --avg, --min or --max", lone);
}

/* A stack has one width: a number of hits, or a sum. */
static bool has_one_number(const struct dp_asked *a)
{
	return !(a->what & ~(DP_AGG_COUNT | DP_AGG_SUM)) && a->nparts <= 1 && !a->part[0].average;
}

struct dp_error *dp_flame_check(struct dp_options *o)
{
	struct dp_asked *a = &o->trace.asked;
	bool svg;
	if (!o->flame)
		return o->title ? dp_error(DP_TAG_USAGE, "--title is that of a flame graph: also give --flame FILE") : NULL;
	DP_TRY(dp_flame_kind(o->flame, &svg));
	if (!has_one_number(a))
		return dp_error(DP_TAG_USAGE, "a flame graph has one number for each stack: use --flame with --count or --sum");
	if (a->by && !dp_asked_is_by(a, DP_KEY_STACK))
		return dp_error(DP_TAG_USAGE, "a flame graph needs stacks: use --flame with --by backtrace, not with --by '%s'",
		                a->by);
	if (!a->what)
		dp_asked_count(a);
	return a->by ? NULL : dp_asked_by(a, "backtrace");
}

struct dp_error *dp_flame_verb_check(const struct dp_options *o)
{
	bool svg;
	if (o->nnames > 1)
		return dp_error(DP_TAG_USAGE, "unexpected argument '%s': dynprobe flame [FOLDED] -o FILE", o->name[1]);
	if (!o->flame)
		return dp_error(DP_TAG_USAGE, "no output file: give -o FILE.svg or -o FILE.html");
	return dp_flame_kind(o->flame, &svg);
}

/* The tool computes a tree of calls from events that have nothing but the stack pointer. */
static struct dp_error *check_tree(struct dp_options *o)
{
	const struct dp_trace_spec *trace = &o->trace;
	const char *other = trace->asked.what                          ? "an aggregation"
	                    : trace->asked.by                          ? "--by"
	                    : trace->asked.slower_ns                   ? "--slower-than"
	                    : trace->hits                              ? "-n"
	                    : trace->snapshots.on                      ? "--snapshot"
	                    : trace->overwrite                         ? "--overwrite"
	                    : trace->pending                           ? "--pending"
	                    : trace->follow                            ? "--follow"
	                    : trace->sink == DP_SINK_LTTNG             ? "events of LTTng"
	                    : o->record || o->record_size || o->rotate ? "--record"
	                    : o->format > DP_FORMAT_JSON               ? "-f ctf, perfetto or openmetrics"
	                    : trace->asked.rate                        ? "--rate"
	                                                               : NULL;
	if (other)
		return dp_error(DP_TAG_USAGE, "a tree of calls (--calls, --self) and %s exclude each other", other);
	for (size_t i = 0; i < trace->nprobes; i++) {
		if (trace->probe[i].spec.point != DP_POINT_RETURN || trace->probe[i].spec.call)
			return dp_error(DP_TAG_USAGE,
			                "'%s': a tree of calls (--calls, --self) has functions only: use --calls or --return",
			                trace->probe[i].spec.text);
		if (trace->probe[i].fields.n || trace->typed[i].ncontexts || trace->typed[i].when || trace->typed[i].form)
			return dp_error(DP_TAG_USAGE,
			                "a tree of calls (--calls, --self) counts all calls and records no values: omit -t "
			                "and --when");
	}
	bool svg;
	if (trace->asked.self && (trace->asked.folded || o->flame))
		return dp_error(DP_TAG_USAGE, "%s has the paths of calls: omit --self, and name the function with --calls",
		                o->flame ? "--flame" : "--folded");
	if (o->flame)
		DP_TRY(dp_flame_kind(o->flame, &svg));
	else if (o->title)
		return dp_error(DP_TAG_USAGE, "--title is that of a flame graph: also give --flame FILE");
	o->trace.sink = DP_SINK_RING;
	o->no_record = true;
	return NULL;
}

/* Minima and maxima are always those of the whole run, and the frames of backtraces go with their processes. */
struct dp_error *dp_changes_check(const struct dp_options *o)
{
	const struct dp_asked *a = &o->trace.asked;
	if (!a->changes)
		return NULL;
	if (!a->interval_ns || !a->what || a->tree || o->profile_hz || o->off_cpu)
		return dp_error(DP_TAG_USAGE, "--changes compares the intervals of an aggregation: also give --interval TIME, "
		                              "and --count, --hist, --sum or --avg");
	if (a->what & (DP_AGG_MIN | DP_AGG_MAX))
		return dp_error(DP_TAG_USAGE,
		                "--changes: --min and --max are always of the whole run; compare --hist, --sum or --avg");
	if (dp_asked_has_key(a, DP_KEY_STACK))
		return dp_error(
		        DP_TAG_USAGE,
		        "--changes and --by backtrace exclude each other: record, and compare with dynprobe view --against");
	if (o->format == DP_FORMAT_OPENMETRICS || a->folded || o->flame)
		return dp_error(DP_TAG_USAGE,
		                "--changes compares numbers in a table: use it without --folded, --flame and -f openmetrics");
	return NULL;
}

/* The file is replaced as a whole, each time. */
static struct dp_error *check_metrics(const struct dp_options *o)
{
	if (o->format != DP_FORMAT_OPENMETRICS)
		return NULL;
	if (!o->output || !strcmp(o->output, "-"))
		return dp_error(DP_TAG_USAGE,
		                "-f openmetrics writes a file: give -o FILE.prom, and --interval TIME to update it");
	if (dp_asked_is_by(&o->trace.asked, DP_KEY_STACK))
		return dp_error(DP_TAG_USAGE, "-f openmetrics has no backtraces: use --by caller, or another format");
	if (o->flame || o->trace.asked.folded)
		return dp_error(DP_TAG_USAGE, "-f openmetrics has no backtraces: omit --folded and --flame");
	return NULL;
}

/* For a _sum beside the histogram. Where values may be below 0, the least one says whether they are. */
static void add_sum(struct dp_asked *a, const struct dp_agg_part *histogram)
{
	const unsigned what = DP_AGG_SUM | (dp_agg_is_ns(histogram) ? 0 : DP_AGG_MIN);
	size_t i = 0;
	while (i < a->nparts && (!dp_agg_is_statistics(&a->part[i]) || strcmp(a->part[i].value, histogram->value) != 0))
		i++;
	if (i == DP_AGG_PARTS_MOST) /* dp_aggs_place() says so */
		return;
	if (i == a->nparts)
		a->part[a->nparts++] = (struct dp_agg_part){.value = histogram->value};
	a->part[i].hidden |= what & ~a->part[i].what;
	a->part[i].what |= what;
}

static void add_sums(struct dp_asked *a)
{
	for (size_t i = 0, n = a->nparts; i < n; i++)
		if (dp_agg_is_histogram(&a->part[i]))
			add_sum(a, &a->part[i]);
}

struct dp_error *dp_aggs_check(enum dp_verb verb, struct dp_options *o)
{
	struct dp_asked *a = &o->trace.asked;
	a->tree |= a->self;
	if (a->tree)
		return check_tree(o);
	DP_TRY(dp_flame_check(o));
	if (!a->what && a->slower_ns == 0)
		return dp_aggs_check_asked(a);
	if (verb == DP_VERB_ATTACH)
		return dp_error(DP_TAG_USAGE, "resident probes (attach) record events: run aggregations without attach");
	if (o->trace.sink == DP_SINK_LTTNG)
		return dp_error(DP_TAG_USAGE, "dynprobe computes aggregations itself: they exclude --sink lttng and --session");
	if (o->trace.pending)
		return dp_error(DP_TAG_USAGE, "aggregations and --pending exclude each other");
	o->trace.sink = DP_SINK_RING;
	if (!a->what)
		return NULL;
	for (size_t i = 0; i < o->trace.nprobes; i++)
		if (o->trace.probe[i].fields.n || o->trace.typed[i].ncontexts)
			return dp_error(DP_TAG_USAGE, "a run with aggregations records no events: omit -t, or use --by");
	DP_TRY(dp_asked_check_texts(a));
	DP_TRY(check_metrics(o));
	if (o->format == DP_FORMAT_CTF || o->format == DP_FORMAT_PERFETTO || o->record || o->record_size || o->rotate)
		return dp_error(DP_TAG_USAGE, "a run with aggregations records no events: use neither --record (--record-size, "
		                              "--rotate) nor -f ctf or perfetto");
	DP_TRY(dp_aggs_check_asked(a));
	if (o->format == DP_FORMAT_OPENMETRICS)
		add_sums(a);
	o->no_record = true;
	return NULL;
}

/* ---- the verb view ------------------------------------------------------------------------------------------------------- */

struct dp_error *dp_option_view_format(struct dp_parser *p, const char *arg)
{
	static const char *const words[] = {"text", "json", "folded", "perfetto"};
	static const enum dp_format format[] = {DP_FORMAT_TEXT, DP_FORMAT_JSON, DP_FORMAT_TEXT, DP_FORMAT_PERFETTO};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(arg, words[i]) != 0)
			continue;
		p->o.format = format[i];
		p->o.view.folded = i == 2;
		return NULL;
	}
	return dp_error(DP_TAG_USAGE, "unknown format '%s': dynprobe view -f takes text, json, folded or perfetto", arg);
}

/* -f folded is short for --count --by backtrace --folded. */
static struct dp_error *fold(struct dp_asked *a)
{
	if ((a->what && a->what != DP_AGG_COUNT) || (a->by && !dp_asked_is_by(a, DP_KEY_STACK)))
		return dp_error(DP_TAG_USAGE, "-f folded counts events by their backtraces: use it without other aggregations");
	dp_asked_count(a);
	if (!a->by)
		DP_TRY(dp_asked_by(a, "backtrace"));
	a->folded = true;
	return NULL;
}

/* --against TIME, unless that is no time but a trace's name. */
static struct dp_error *check_against(struct dp_options *o)
{
	struct dp_view_options *view = &o->view;
	if (!view->against)
		return NULL;
	if (o->format == DP_FORMAT_PERFETTO || o->flame || o->trace.asked.folded)
		return dp_error(DP_TAG_USAGE,
		                "--against compares numbers in a table: use it without --folded, --flame and -f perfetto");
	struct dp_error *err = dp_duration_parse("--against", view->against, &view->against_ns);
	if (err)
		view->against_ns = 0;
	dp_error_destroy(err);
	if (view->against_ns && !view->last_ns && !view->from_ns && !view->to_ns)
		view->last_ns = view->against_ns;
	return NULL;
}

struct dp_error *dp_view_check(struct dp_options *o)
{
	if (o->view.folded)
		DP_TRY(fold(&o->trace.asked));
	DP_TRY(dp_flame_check(o));
	if (o->format == DP_FORMAT_PERFETTO && o->trace.asked.what)
		return dp_error(DP_TAG_USAGE, "-f perfetto shows events: use it without aggregations and --flame");
	if (o->view.last_ns && (o->view.from_ns || o->view.to_ns))
		return dp_error(DP_TAG_USAGE, "--last and --from or --to exclude each other");
	if (o->view.to_ns && o->view.to_ns < o->view.from_ns)
		return dp_error(DP_TAG_USAGE, "--to is before --from");
	DP_TRY(check_against(o));
	return dp_aggs_check_asked(&o->trace.asked);
}

/* SPDX-License-Identifier: MIT */
#include "cli/run/aggregations.h"

#include "cli/terminal/table.h"
#include "injector/tracee/tracee.h"
#include "session/run/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOP_NS UINT64_C(1000000000) /* between two drawings of --top */

/* ---- flame graphs ---------------------------------------------------------------------------------------------------------- */

/* The folded lines are what other tools get: both pictures are the same. */
struct dp_error *dp_aggs_flame(const struct dp_options *options, const struct dp_aggs_shown *shown,
                               const struct dp_flame_about *about)
{
	struct dp_flame_about as = *about;
	dp_auto_free char *text = NULL;
	size_t n = 0;
	if (!options->flame)
		return NULL;
	if (shown->part[0].what & DP_AGG_SUM)
		as.unit = dp_agg_is_ns(&shown->part[0]) ? "ns" : "in all";
	FILE *lines = open_memstream(&text, &n);
	if (!lines)
		return dp_error_nomem();
	dp_aggs_folded(shown, lines);
	return fclose(lines) ? dp_error_nomem() : dp_flame_folded(options, text, n, &as);
}

/* The processes of the run; those that have ended and are forgotten are not among them. */
void dp_trace_program(const struct dp_trace *t, struct dp_buf *b)
{
	for (size_t i = 0; i < t->run.nsessions; i++)
		dp_flame_process(b, i, dp_target_comm(t->run.session[i]->target), dp_target_pid(t->run.session[i]->target));
}

static struct dp_error *draw_flame(const struct dp_trace *t, const struct dp_aggs_shown *shown)
{
	struct dp_buf program = {0};
	dp_trace_program(t, &program);
	struct dp_error *err = dp_aggs_flame(t->options, shown,
	                                     &(struct dp_flame_about){.program = program.len ? dp_buf_str(&program) : NULL,
	                                                              .unit = "hits",
	                                                              .empty = "no hit came with a stack"});
	dp_buf_fini(&program);
	return err;
}

/* ---- metrics ----------------------------------------------------------------------------------------------------------------
 */

static struct dp_error *unwritable(const struct dp_options *o, int why)
{
	errno = why;
	return dp_error_sys(DP_TAG_OUTPUT, "cannot write the metrics %s", o->output);
}

static int write_metrics(int fd, const struct dp_aggs_shown *shown)
{
	FILE *to = fdopen(fd, "w");
	if (!to)
		return errno;
	if (shown)
		dp_aggs_metrics(shown, to);
	const int why = fflush(to) || fchmod(fd, 0644) ? errno : 0; /* other users' collectors read it */
	return fclose(to) && !why ? errno : why;
}

/* Written beside its place and renamed: its reader sees the old file or the new one. The other name does not end in .prom. */
static struct dp_error *save_metrics(const struct dp_options *o, const struct dp_aggs_shown *shown)
{
	dp_auto_free char *path = NULL;
	if (asprintf(&path, "%s.XXXXXX", o->output) < 0) {
		path = NULL;
		return dp_error_nomem();
	}
	const int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return unwritable(o, errno);
	int why = write_metrics(fd, shown);
	if (!why && shown && rename(path, o->output))
		why = errno;
	if (why || !shown)
		unlink(path);
	return why ? unwritable(o, why) : NULL;
}

static struct dp_error *update_metrics(struct dp_trace *t)
{
	struct dp_aggs_shown shown;
	return dp_rows_shown(&t->run, false, &shown) ? save_metrics(t->options, &shown) : NULL;
}

static void say_sumless(const struct dp_asked *a)
{
	struct dp_buf names = {0};
	for (size_t i = 0; i < a->nparts; i++)
		if (dp_agg_is_histogram(&a->part[i]) && !dp_agg_sum_of(a->part, a->nparts, i))
			dp_buf_printf(&names, "%s'%s'", names.len ? ", " : "", a->part[i].value);
	if (names.len)
		fprintf(stderr, "dynprobe: no _sum for --hist %s: each is one more aggregation, and a run has at most %u\n",
		        dp_buf_str(&names), DP_AGG_PARTS_MOST);
	dp_buf_fini(&names);
}

struct dp_error *dp_aggs_place(const struct dp_options *options)
{
	if (options->format == DP_FORMAT_OPENMETRICS) {
		DP_TRY(save_metrics(options, NULL));
		if (!options->quiet)
			say_sumless(&options->trace.asked);
	}
	return dp_flame_place(options);
}

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

void dp_aggs_print(const struct dp_options *options, const struct dp_aggs_shown *shown, FILE *to)
{
	const struct dp_asked *a = &options->trace.asked;
	if (options->format == DP_FORMAT_JSON)
		dp_aggs_json(shown, to);
	else if (a->folded)
		dp_aggs_folded(shown, to);
	else if (!options->flame || a->top || a->interval_ns || options->output)
		dp_aggs_text(shown, to);
}

static bool put_changes(const struct dp_options *options, const struct dp_compared *c, FILE *to)
{
	return options->format == DP_FORMAT_JSON ? dp_compared_json(c, to) : dp_compared_text(c, to);
}

/* Nothing for the first interval. */
static void print_changes(struct dp_trace *t, const struct dp_aggs_shown *shown, FILE *to)
{
	const uint64_t begin = dp_now_ns() + (uint64_t)dp_clock_offset() - (uint64_t)(shown->seconds * 1e9);
	const struct dp_compared c = {{t->earlier.shown, t->earlier.begin_ns}, {*shown, begin}};
	bool ok = !t->earlier.row || put_changes(t->options, &c, to);
	ok &= dp_compared_keep(&t->earlier, shown, begin);
	if (!ok)
		fprintf(stderr, "dynprobe: out of memory: changes are not shown\n");
}

static void print(struct dp_trace *t, const struct dp_aggs_shown *shown, FILE *to)
{
	if (shown->delta && t->options->trace.asked.changes)
		print_changes(t, shown, to);
	else
		dp_aggs_print(t->options, shown, to);
}

static void draw(struct dp_trace *t, const struct dp_aggs_shown *shown)
{
	dp_auto_free char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);
	if (!to)
		return;
	print(t, shown, to);
	if (!fclose(to))
		dp_table_draw(&t->out.drawn, text, t->out.file);
	fflush(t->out.file);
}

void dp_aggs_begin(struct dp_trace *t)
{
	struct dp_asked *a = &t->spec.asked;
	if ((a->what || a->tree) && a->top && !a->interval_ns && dp_table_is_redrawn(t->options))
		a->interval_ns = TOP_NS;
}

static struct dp_error *show(struct dp_trace *t, bool delta)
{
	struct dp_aggs_shown shown;
	if (!dp_rows_shown(&t->run, delta, &shown))
		return NULL;
	shown.sources = t->out.sources;
	shown.width = dp_table_width(t->options);
	/* Changes are below each other: who compares looks back. The last table stays, and is like those before. */
	const bool redrawn = dp_table_is_redrawn(t->options) && !t->spec.asked.changes;
	shown.rate |= t->spec.asked.interval_ns && redrawn;
	if (delta && redrawn) {
		draw(t, &shown);
		return NULL;
	}
	dp_redraw_clear(&t->out.drawn, t->out.file);
	print(t, &shown, t->out.file);
	fflush(t->out.file);
	return delta ? NULL : draw_flame(t, &shown);
}

/* The run goes on; the file's reader has the last values. */
static void report(struct dp_error *err)
{
	if (err)
		fprintf(stderr, "dynprobe: %s\n", err->message);
	dp_error_destroy(err);
}

void dp_aggs_round(struct dp_trace *t)
{
	if (!dp_rows_round(&t->run))
		return;
	if (t->options->format == DP_FORMAT_OPENMETRICS)
		report(update_metrics(t));
	else if (!t->options->quiet)
		dp_error_destroy(show(t, true));
	dp_rows_next(&t->run);
}

struct dp_error *dp_aggs_final(struct dp_trace *t)
{
	bool failed;
	if (!dp_rows_final(&t->run, &failed))
		return NULL;
	if (failed)
		fprintf(stderr, "dynprobe: out of memory for the aggregations: some are missing\n");
	return t->options->format == DP_FORMAT_OPENMETRICS ? update_metrics(t) : show(t, false);
}

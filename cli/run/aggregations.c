/* SPDX-License-Identifier: MIT */
#include "cli/run/aggregations.h"

#include "session/run/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOP_NS UINT64_C(1000000000) /* between two drawings of --top */

/* ---- flame graphs ---------------------------------------------------------------------------------------------------------- */

static void put_targets(struct dp_buf *b, const struct dp_options *o)
{
	const struct dp_trace_spec *t = &o->trace;
	for (size_t i = 0; i < t->npids && i < 3; i++)
		dp_buf_printf(b, "%s%d", i ? ", " : " in process ", t->pid[i]);
	if (t->npids > 3)
		dp_buf_printf(b, " and %zu others", t->npids - 3);
	for (size_t i = 0; t->command && t->command[i] && i < 4; i++)
		dp_buf_printf(b, "%s%.60s", i ? " " : " in ", t->command[i]);
	for (size_t i = 0; i < o->nnames && !t->npids && !t->command; i++)
		dp_buf_printf(b, "%s%s", i ? ", " : " in ", o->name[i]);
}

/* "sum of arg0 at malloc, in process 4242" */
static void put_title(struct dp_buf *b, const struct dp_options *o, const char *unit)
{
	const struct dp_asked *a = &o->trace.asked;
	if (a->what & DP_AGG_SUM)
		dp_buf_printf(b, "sum of %s", a->part[0].value);
	else
		dp_buf_printf(b, "%s", unit);
	for (size_t i = 0; i < o->trace.nprobes && i < 3; i++)
		dp_buf_printf(b, "%s%s", i ? ", " : " at ", o->trace.probe[i].spec.text);
	if (o->trace.nprobes > 3)
		dp_buf_printf(b, ", ...");
	put_targets(b, o);
}

struct dp_error *dp_flame_place(const struct dp_options *options)
{
	FILE *to = options->flame ? fopen(options->flame, "ae") : NULL;
	if (options->flame && !to)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot write the flame graph %s", options->flame);
	if (to)
		fclose(to);
	return NULL;
}

struct dp_error *dp_flame_save(const struct dp_options *options, struct dp_flame *f, const struct dp_flame_shown *shown)
{
	struct dp_flame_shown as = *shown;
	struct dp_flame_stats stats;
	DP_TRY(dp_flame_kind(options->flame, &as.svg));
	FILE *to = fopen(options->flame, "we");
	if (!to)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot write the flame graph %s", options->flame);
	struct dp_error *err = dp_flame_write(f, &as, to);
	if (fclose(to) && !err)
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the flame graph %s", options->flame);
	dp_flame_stats(f, &stats);
	if (err || options->quiet)
		return err;
	fprintf(stderr, "dynprobe: flame graph of %llu stacks: %s\n", (unsigned long long)stats.stacks, options->flame);
	if (stats.skipped)
		fprintf(stderr, "dynprobe: %llu lines or stacks without a weight are left out of it\n",
		        (unsigned long long)stats.skipped);
	return NULL;
}

/* The folded lines are what other tools get: both pictures are the same. */
static struct dp_error *take_rows(struct dp_flame *f, const struct dp_aggs_shown *shown)
{
	dp_auto_free char *text = NULL;
	size_t n = 0;
	FILE *lines = open_memstream(&text, &n);
	if (!lines)
		return dp_error_nomem();
	dp_aggs_folded(shown, lines);
	if (fclose(lines))
		return dp_error_nomem();
	for (const char *at = text, *end; (end = memchr(at, '\n', (size_t)(text + n - at))); at = end + 1)
		dp_flame_line(f, at, (size_t)(end - at));
	return NULL;
}

struct dp_error *dp_aggs_flame(const struct dp_options *options, const struct dp_aggs_shown *shown, const char *unit)
{
	struct dp_flame *f = NULL;
	struct dp_buf title = {0};
	if (!options->flame)
		return NULL;
	if (shown->part[0].what & DP_AGG_SUM)
		unit = dp_agg_is_ns(&shown->part[0]) ? "ns" : "in all";
	put_title(&title, options, unit);
	struct dp_error *err = dp_flame_create(&f);
	if (!err)
		err = take_rows(f, shown);
	if (!err)
		err = dp_flame_save(options, f,
		                    &(struct dp_flame_shown){options->title ? options->title : dp_buf_str(&title), unit, false});
	dp_flame_destroy(f);
	dp_buf_fini(&title);
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

struct dp_error *dp_aggs_place(const struct dp_options *options)
{
	if (options->format == DP_FORMAT_OPENMETRICS)
		DP_TRY(save_metrics(options, NULL));
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

/* Is a table drawn again in its place? Not beside a command, which writes to the same terminal. */
static bool is_redrawn(const struct dp_options *o)
{
	const char *term = getenv("TERM");
	return o->format == DP_FORMAT_TEXT && !o->quiet && !o->output && !o->trace.command && !o->trace.asked.folded &&
	       isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

static struct winsize size_of(int fd)
{
	struct winsize w = {0};
	if (ioctl(fd, TIOCGWINSZ, &w))
		w = (struct winsize){0};
	return w;
}

/* Its width, if that is a terminal's. */
static unsigned width_of(const struct dp_options *o)
{
	return o->output ? 0 : size_of(o->trace.command ? STDERR_FILENO : STDOUT_FILENO).ws_col;
}

static void draw(struct dp_trace *t, const struct dp_aggs_shown *shown)
{
	const struct winsize w = size_of(STDOUT_FILENO);
	dp_auto_free char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);
	if (!to)
		return;
	dp_aggs_text(shown, to);
	if (!fclose(to))
		dp_redraw(&t->out.drawn, w.ws_col ? w.ws_col : 80, w.ws_row ? w.ws_row : 24, text, t->out.file);
	fflush(t->out.file);
}

void dp_aggs_begin(struct dp_trace *t)
{
	struct dp_asked *a = &t->spec.asked;
	if (a->what && a->top && !a->interval_ns && is_redrawn(t->options))
		a->interval_ns = TOP_NS;
}

static struct dp_error *show(struct dp_trace *t, bool delta)
{
	struct dp_aggs_shown shown;
	if (!dp_rows_shown(&t->run, delta, &shown))
		return NULL;
	shown.sources = t->out.sources;
	shown.width = width_of(t->options);
	if (delta && is_redrawn(t->options)) {
		shown.rate = true;
		draw(t, &shown);
		return NULL;
	}
	dp_redraw_clear(&t->out.drawn, t->out.file);
	dp_aggs_print(t->options, &shown, t->out.file);
	fflush(t->out.file);
	return delta ? NULL : dp_aggs_flame(t->options, &shown, "hits");
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

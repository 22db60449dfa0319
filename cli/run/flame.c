/* SPDX-License-Identifier: MIT */
#include "cli/run/flame.h"

#include <string.h>

#define NAMED 3u

void dp_flame_process(struct dp_buf *b, size_t n, const char *comm, pid_t pid)
{
	if (n < NAMED)
		dp_buf_printf(b, "%s%s (pid %d)", n ? ", " : "", comm, pid);
	else if (n == NAMED)
		dp_buf_printf(b, ", ...");
}

/* What the user named. */
static void put_targets(struct dp_buf *b, const struct dp_options *o)
{
	const struct dp_trace_spec *t = &o->trace;
	for (size_t i = 0; i < t->npids && i < NAMED; i++)
		dp_buf_printf(b, "%s%d", i ? ", " : "pid ", t->pid[i]);
	if (t->npids > NAMED)
		dp_buf_printf(b, " and %zu others", t->npids - NAMED);
	for (size_t i = 0; t->command && t->command[i] && i < 4; i++)
		dp_buf_printf(b, "%s%.60s", i ? " " : "", t->command[i]);
	for (size_t i = 0; i < t->programs.n && i < NAMED && !t->npids && !t->command; i++)
		dp_buf_printf(b, "%s%s", i ? ", " : "", t->programs.item[i]);
	for (size_t i = 0; i < o->nnames && !t->npids && !t->command; i++)
		dp_buf_printf(b, "%s%s", i ? ", " : "", o->name[i]);
}

/* "sum of arg0 at malloc" */
static void put_measured(struct dp_buf *b, const struct dp_options *o, const char *unit)
{
	const struct dp_asked *a = &o->trace.asked;
	if (a->what & DP_AGG_SUM)
		dp_buf_printf(b, "sum of %s", a->part[0].value);
	else
		dp_buf_printf(b, "%s", unit);
	for (size_t i = 0; i < o->trace.nprobes && i < NAMED; i++)
		dp_buf_printf(b, "%s%s", i ? ", " : " at ", o->trace.probe[i].spec.text);
	if (o->trace.nprobes > NAMED)
		dp_buf_printf(b, ", ...");
}

/* "redis-server (pid 4242): sum of arg0 at malloc" */
static void put_title(struct dp_buf *b, const struct dp_options *o, const struct dp_flame_about *about)
{
	const size_t before = b->len;
	if (about->program)
		dp_buf_printf(b, "%s", about->program);
	else
		put_targets(b, o);
	if (b->len > before)
		dp_buf_printf(b, ": ");
	if (about->what)
		dp_buf_printf(b, "%s", about->what);
	else
		put_measured(b, o, about->unit);
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
	if (stats.stacks)
		fprintf(stderr, "dynprobe: flame graph of %llu stack%s: %s\n", (unsigned long long)stats.stacks,
		        stats.stacks == 1 ? "" : "s", options->flame);
	if (stats.skipped)
		fprintf(stderr, "dynprobe: %llu lines or stacks without a weight are left out of it\n",
		        (unsigned long long)stats.skipped);
	return NULL;
}

/* A picture of an earlier run must not stay either, so one without frames is written; its title says why. */
static struct dp_error *save(const struct dp_options *o, struct dp_flame *f, const struct dp_flame_about *about)
{
	struct dp_buf title = {0};
	struct dp_flame_stats stats;
	dp_flame_stats(f, &stats);
	put_title(&title, o, about);
	if (!stats.stacks) {
		dp_buf_printf(&title, " (%s)", about->empty);
		fprintf(stderr, "dynprobe: the flame graph %s is empty: %s\n", o->flame, about->empty);
	}
	struct dp_error *err =
	        dp_flame_save(o, f, &(struct dp_flame_shown){o->title ? o->title : dp_buf_str(&title), about->unit, false});
	dp_buf_fini(&title);
	return err;
}

struct dp_error *dp_flame_folded(const struct dp_options *options, const char *lines, size_t n,
                                 const struct dp_flame_about *about)
{
	struct dp_flame *f = NULL;
	DP_TRY(dp_flame_create(&f));
	for (const char *at = lines, *end; n && (end = memchr(at, '\n', (size_t)(lines + n - at))); at = end + 1)
		dp_flame_line(f, at, (size_t)(end - at));
	struct dp_error *err = save(options, f, about);
	dp_flame_destroy(f);
	return err;
}

/* SPDX-License-Identifier: MIT */
/* A snapshot as text: a header, the threads, and what else was requested. */
#include "base/path.h"
#include "output/snapshot/show_internal.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

enum { FULL = 1 << 16, DEEPEST = 60, USUAL_WIDTH = 100 };

void dp_show_put(struct dp_shower *x, const char *text)
{
	dp_put_visible(&x->b, text, strlen(text), 0);
}

void dp_show_colored(struct dp_shower *x, const char *color, const char *text)
{
	if (!*text)
		return;
	dp_put_str(&x->b, x->o->color ? color : "");
	dp_show_put(x, text);
	dp_put_str(&x->b, x->o->color ? DP_SHOW_RESET : "");
}

/* Limited, because trees may be deeper than a line is long. */
void dp_show_indent(struct dp_shower *x, size_t n)
{
	static const char blanks[] = "                                                            ";
	dp_buf_put(&x->b, blanks, n < DEEPEST ? n : DEEPEST);
}

size_t dp_show_column(const struct dp_shower *x, size_t line)
{
	size_t n = 0;
	for (size_t i = line; i < x->b.len; i++) {
		if (x->b.data[i] == '\033')
			while (i < x->b.len && x->b.data[i] != 'm')
				i++;
		else
			n += (x->b.data[i] & 0xc0) != 0x80;
	}
	return n;
}

size_t dp_show_width(const struct dp_shower *x)
{
	return x->o->width ? x->o->width : USUAL_WIDTH;
}

void dp_show_flush(struct dp_shower *x, bool all)
{
	if (x->b.len < (all ? 1 : FULL))
		return;
	x->failed |= x->b.failed || fwrite(x->b.data, 1, x->b.len, x->to) != x->b.len;
	x->b.len = 0;
}

void dp_show_notes(struct dp_shower *x, const struct dp_snap_note *list, size_t indent)
{
	static const char *const head[] = {[DP_NOTE_COMMENT] = "# ",
	                                   [DP_NOTE_WARNING] = "! warning: ",
	                                   [DP_NOTE_CRITICAL] = "! critical: ",
	                                   [DP_NOTE_JSON] = "# json: "};
	const struct dp_snap_note *n;
	DL_FOREACH(list, n)
	{
		const bool loud = n->kind == DP_NOTE_WARNING || n->kind == DP_NOTE_CRITICAL;
		const char *color = n->kind == DP_NOTE_CRITICAL ? DP_SHOW_RED : loud ? DP_SHOW_YELLOW : DP_SHOW_DIM;
		dp_show_indent(x, indent);
		dp_put_str(&x->b, x->o->color ? color : "");
		dp_put_str(&x->b, head[n->kind]);
		dp_show_put(x, n->text);
		if (*n->module) {
			dp_put_str(&x->b, " (");
			dp_show_put(x, n->module);
			dp_put_str(&x->b, ")");
		}
		dp_put_str(&x->b, x->o->color ? DP_SHOW_RESET : "");
		dp_put_str(&x->b, "\n");
	}
}

/* ---- header */

static void put_line(struct dp_shower *x, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	dp_buf_printf(&x->b, "  %-12s ", name);
	dp_show_put(x, text);
	dp_put_str(&x->b, "\n");
}

static void put_executable(struct dp_shower *x)
{
	const char *exe = x->s->exe, *name = dp_snapshot_object_name(x->s, exe);
	if (!*exe)
		return;
	dp_buf_printf(&x->b, "  %-12s ", "executable");
	dp_show_put(x, exe);
	if (strcmp(name, dp_path_last(exe)) != 0) {
		dp_put_str(&x->b, " (started as ");
		dp_show_put(x, name);
		dp_put_str(&x->b, ")");
	}
	dp_put_str(&x->b, "\n");
}

static void put_words(struct dp_shower *x, const char *name, const struct dp_snap_word *list)
{
	const struct dp_snap_word *w;
	if (!list)
		return;
	dp_buf_printf(&x->b, "  %-12s ", name);
	DL_FOREACH(list, w)
	{
		dp_show_put(x, w->text);
		dp_put_str(&x->b, w->next ? ", " : "\n");
	}
}

static void put_time(struct dp_shower *x, uint64_t ns)
{
	char text[48];
	const time_t at = (time_t)(ns / 1000000000u);
	struct tm tm;
	if (!ns || !localtime_r(&at, &tm) || !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		return;
	dp_put_str(&x->b, ", ");
	dp_put_str(&x->b, text);
	dp_buf_printf(&x->b, ".%03u", (unsigned)(ns % 1000000000u / 1000000u));
}

static void put_ms(struct dp_shower *x, const char *before, uint64_t ns)
{
	if (ns)
		dp_buf_printf(&x->b, "%s%" PRIu64 ".%03" PRIu64 " ms", before, ns / 1000000u, ns / 1000u % 1000u);
}

static void put_pause(struct dp_shower *x)
{
	const struct dp_snapshot *s = x->s;
	dp_put_str(&x->b, "  taken        mode ");
	dp_show_put(x, *s->mode ? s->mode : "?");
	put_ms(x, ", paused for ", s->pause_ns);
	if (x->o->verbose) {
		put_ms(x, " (stopping ", s->stop_ns);
		put_ms(x, s->stop_ns ? ", reading " : " (reading ", s->read_ns);
		dp_put_str(&x->b, s->stop_ns || s->read_ns ? ")" : "");
		put_ms(x, ", prefetched for ", s->rehearsal_ns);
		put_ms(x, ", in total ", s->total_ns);
		dp_put_str(&x->b, ", by ");
		dp_show_put(x, *s->dynprobe ? s->dynprobe : "?");
	}
	dp_put_str(&x->b, "\n");
}

static void put_probe(struct dp_shower *x)
{
	if (!x->s->probe)
		return;
	dp_put_str(&x->b, "  probe        ");
	dp_show_put(x, x->s->probe);
	if (x->s->hit)
		dp_buf_printf(&x->b, ", snapshot_id 0x%" PRIx64, x->s->hit);
	if (x->s->condition) {
		dp_put_str(&x->b, ", when ");
		dp_show_put(x, x->s->condition);
	}
	dp_put_str(&x->b, "\n");
}

/* Quotes arguments that a shell would not take as one plain word. */
static void put_command(struct dp_shower *x)
{
	const char *const *arg = x->s->argv;
	if (!*arg)
		return;
	dp_put_str(&x->b, "  command     ");
	for (; *arg; arg++) {
		dp_put_str(&x->b, " ");
		dp_put_visible(&x->b, *arg, strlen(*arg), **arg && !strpbrk(*arg, " \t\n\"'\\") ? 0 : '"');
	}
	dp_put_str(&x->b, "\n");
}

static void put_attributes(struct dp_shower *x)
{
	const struct dp_snap_pair *p;
	DL_FOREACH(x->s->attributes, p)
	{
		dp_put_str(&x->b, "  ");
		dp_show_put(x, p->key);
		dp_put_str(&x->b, ": ");
		if (p->is_int)
			dp_put_signed(&x->b, p->number);
		else
			dp_show_put(x, p->text);
		dp_put_str(&x->b, "\n");
		dp_show_flush(x, false);
	}
}

static void put_details(struct dp_shower *x)
{
	const struct dp_snapshot *s = x->s;
	put_line(x, "host", s->hostname);
	put_line(x, "kernel", s->kernel);
	put_line(x, "id", s->id);
	for (const char *const *e = s->environ; e && *e; e++)
		put_line(x, "environment", *e);
	put_attributes(x);
}

static void put_head(struct dp_shower *x)
{
	const struct dp_snapshot *s = x->s;
	dp_show_colored(x, DP_SHOW_BOLD, *s->application ? s->application : "?");
	dp_buf_printf(&x->b, " (pid %d", s->pid);
	if (s->inner_pid)
		dp_buf_printf(&x->b, ", inner %d", s->inner_pid);
	dp_buf_printf(&x->b, "), %zu thread%s", s->nthreads, s->nthreads == 1 ? "" : "s");
	put_time(x, s->time_ns);
	dp_put_str(&x->b, "\n");
	dp_show_verdict(x);
	put_probe(x);
	put_pause(x);
	put_words(x, "classifiers", s->classifiers);
	put_words(x, "tags", s->tags);
	if (strcmp(s->comm, s->application) != 0)
		put_line(x, "name", s->comm);
	put_executable(x);
	put_command(x);
	if (x->o->verbose)
		put_details(x);
	put_words(x, "truncated", s->truncations);
}

/* ---- the whole snapshot */

/* Globals, grouped by file. */
static void put_globals(struct dp_shower *x)
{
	const struct dp_snap_variable *v = x->s->globals, *before = NULL;
	for (; v; before = v, v = v->next) {
		if (!before || strcmp(before->object, v->object) || strcmp(before->unit, v->unit)) {
			dp_put_str(&x->b, "\nGlobals");
			dp_put_str(&x->b, *v->unit || *v->object ? " of " : "");
			dp_show_put(x, v->unit);
			dp_put_str(&x->b, *v->object ? " [" : "");
			dp_show_put(x, v->object);
			dp_put_str(&x->b, *v->object ? "]:\n" : ":\n");
		}
		dp_show_variable(x, v, NULL, 4);
		dp_show_flush(x, false);
	}
}

static void show_all(struct dp_shower *x)
{
	put_head(x);
	dp_show_threads(x);
	if (!x->o->quiet && !x->o->brief)
		put_globals(x);
	if (x->o->maps)
		dp_show_maps(x);
	if (x->o->files)
		dp_show_files(x);
	if (x->o->limits)
		dp_show_limits(x);
	if (!x->folded)
		return;
	dp_put_str(&x->b, "\n");
	dp_show_colored(x, DP_SHOW_DIM, "(folded: -v, --thread TID or --var PATH show the rest)");
	dp_put_str(&x->b, "\n");
}

static struct dp_error *show(struct dp_shower *x)
{
	const struct dp_snap_variable *v = NULL;
	const struct dp_snap_thread *t = NULL;
	const struct dp_snap_frame *f = NULL;
	for (size_t i = 0; i < x->o->nvars; i++) {
		DP_TRY(dp_show_find(x->s, x->o, x->o->var[i], &v));
		dp_show_variable(x, v, x->o->var[i], 0);
	}
	if (x->o->nvars)
		return NULL;
	DP_TRY(dp_show_place(x->s, x->o, &t, &f));
	if (f)
		dp_show_frame(x, f);
	else if (t)
		dp_show_thread(x, t);
	else
		show_all(x);
	return NULL;
}

struct dp_error *dp_show_snapshot(const struct dp_snapshot *s, const struct dp_show_options *options, FILE *to)
{
	struct dp_shower x = {.s = s, .o = options, .to = to};
	struct dp_error *err = show(&x);
	if (!err)
		dp_show_flush(&x, true);
	if (!err && (x.failed || x.b.failed || fflush(to)))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the text of the snapshot");
	dp_buf_fini(&x.b);
	return err;
}

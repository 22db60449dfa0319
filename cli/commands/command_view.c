/* SPDX-License-Identifier: MIT */
/* view: recorded traces as text, JSON or aggregations. */
#include "cli/commands/command_view.h"

#include "cli/commands/command.h"
#include "cli/run/aggregations.h"
#include "output/ctf/ctf_dir.h"
#include "session/traces/traces.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OURS       "dynprobe-"
#define CHECK      4096u /* events between two looks at the output; a power of two */
#define OUT_BUFFER (256u << 10)

struct viewer {
	const struct dp_options *options;
	struct dp_trace_view *view;
	FILE *file;
	struct dp_source_lines *sources; /* or NULL */
	uint64_t shown;
	bool damaged;
};

/* ---- which traces ---------------------------------------------------------------------------------------------------------- */

/* Takes `path`. */
static void keep_later(char *path, char **last, struct timespec *newest)
{
	struct stat st;
	const bool is_later = !stat(path, &st) && (st.st_mtim.tv_sec > newest->tv_sec ||
	                                           (st.st_mtim.tv_sec == newest->tv_sec && st.st_mtim.tv_nsec > newest->tv_nsec));
	if (is_later) {
		*newest = st.st_mtim;
		free(*last);
		*last = path;
	} else {
		free(path);
	}
}

/* The newest trace in the default directory, owned by the caller; or NULL. */
static char *last_trace(void)
{
	const char *home = dp_home();
	char *last = NULL, *path;
	dp_auto_free char *dir = NULL;
	struct timespec newest = {0};
	if (!home || asprintf(&dir, "%s/lttng-traces", home) < 0) {
		dir = NULL;
		return NULL;
	}
	dp_auto_closedir DIR *d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d));)
		if (!strncmp(e->d_name, OURS, sizeof(OURS) - 1) && asprintf(&path, "%s/%s", dir, e->d_name) >= 0)
			keep_later(path, &last, &newest);
	return last;
}

struct dp_error *dp_view_add_named(struct dp_trace_view *view, const char *name)
{
	dp_auto_free char *dir = strchr(name, '/') ? NULL : dp_traces_dir(), *path = NULL;
	if (!access(name, F_OK) || errno != ENOENT)
		return dp_view_add(view, name);
	if (dir && asprintf(&path, "%s/%s", dir, name) < 0)
		path = NULL;
	if (path && !access(path, F_OK))
		return dp_view_add(view, path);
	return dp_error_advise(dp_error(DP_TAG_BAD_TRACE, "there is no trace '%s'%s%s", name, dir ? " here or in " : "",
	                                dir ? dir : ""),
	                       "check the name; dynprobe traces lists the traces that were recorded");
}

struct dp_error *dp_view_add_traces(struct dp_trace_view *view, const struct dp_options *o)
{
	dp_auto_free char *last = o->nnames ? NULL : last_trace();
	if (!o->nnames && !last)
		return dp_error(DP_TAG_USAGE, "no trace in ~/lttng-traces: use dynprobe view DIR");
	if (last)
		return dp_view_add(view, last);
	for (size_t i = 0; i < o->nnames; i++)
		DP_TRY(dp_view_add_named(view, o->name[i]));
	return NULL;
}

/* ---- output ---------------------------------------------------------------------------------------------------------------- */

static struct dp_error *open_output(struct viewer *v, FILE **owned)
{
	const char *path = v->options->output;
	*owned = path && strcmp(path, "-") ? fopen(path, "we") : NULL;
	if (path && strcmp(path, "-") && !*owned)
		return dp_error_sys(DP_TAG_OUTPUT, "opening %s for the events", path);
	v->file = *owned ? *owned : stdout;
	setvbuf(v->file, NULL, _IOFBF, OUT_BUFFER);
	return NULL;
}

static struct dp_error *flush(FILE *file)
{
	return fflush(file) || ferror(file) ? dp_error_sys(DP_TAG_OUTPUT, "writing the events") : NULL;
}

/* Hits were lost before this event: lines of system calls must know. */
static void note_gap(const struct viewer *v, struct dp_writer *w, const struct dp_event_class *class, uint64_t *before)
{
	const uint64_t lost = class->call ? dp_view_lost(v->view) : *before;
	if (lost != *before)
		dp_writer_gap(w);
	*before = lost;
}

static struct dp_error *create_writer(struct viewer *v, const struct dp_event_class *class, size_t n, struct dp_writer **ret)
{
	if (v->options->format == DP_FORMAT_JSON)
		return dp_json_writer_create(v->file, class, n, ret);
	if (v->options->format == DP_FORMAT_PERFETTO)
		return dp_perfetto_writer_create(v->file, class, n, ret);
	return dp_text_writer_create(v->file, dp_options_color(v->options, v->file), class, n, ret);
}

static struct dp_error *show_events(struct viewer *v, const struct dp_event_class *class, size_t n)
{
	struct dp_writer *w = NULL;
	struct dp_event e;
	uint64_t lost = 0;
	struct dp_error *err = create_writer(v, class, n, &w);
	if (!err)
		dp_writer_show_sources(w, v->sources, true);
	while (!err && dp_view_next(v->view, &e)) {
		note_gap(v, w, &class[e.probe], &lost);
		dp_writer_recorded(w, &e);
		if (!(++v->shown & (CHECK - 1)) || ferror(v->file))
			err = ferror(v->file) ? flush(v->file) : dp_writer_flush(w);
	}
	struct dp_error *closed = w ? dp_writer_close(w) : NULL;
	if (!err)
		return closed;
	dp_error_destroy(closed);
	return err;
}

static struct dp_error *show_aggregations(struct viewer *v)
{
	struct dp_aggs_shown shown;
	DP_TRY(dp_view_tally(v->view, &shown));
	shown.sources = v->sources;
	dp_aggs_print(v->options, &shown, v->file);
	DP_TRY(flush(v->file));
	return dp_aggs_flame(v->options, &shown,
	                     &(struct dp_flame_about){.unit = "hits", .empty = "no event has a backtrace (-t backtrace)"});
}

/* ---- what was not shown ---------------------------------------------------------------------------------------------------- */

static void say(const char *text, void *data)
{
	*(bool *)data = true;
	fprintf(stderr, "dynprobe: the trace is damaged; it was read up to there: %s\n", text);
}

bool dp_view_report(const struct dp_trace_view *view)
{
	const uint64_t lost = dp_view_lost(view), failed = dp_view_failed(view), open = dp_view_unfinished(view);
	bool damaged = false;
	dp_view_damages(view, say, &damaged);
	if (lost)
		fprintf(stderr, "dynprobe: %" PRIu64 " hit%s lost while the trace was recorded\n", lost,
		        lost == 1 ? " was" : "s were");
	if (open)
		fprintf(stderr, "dynprobe: %" PRIu64 " call%s not shown: no return of %s is in the trace\n", open,
		        open == 1 ? " is" : "s are", open == 1 ? "it" : "them");
	if (failed)
		fprintf(stderr,
		        "dynprobe: %" PRIu64 " event%s not counted: a value was not readable, or has no place among the rows\n",
		        failed, failed == 1 ? " is" : "s are");
	return damaged;
}

struct dp_view_asked dp_view_asked_of(const struct dp_options *o)
{
	return (struct dp_view_asked){
	        .when = o->view.when, .last_ns = o->view.last_ns, .from_ns = o->view.from_ns, .to_ns = o->view.to_ns};
}

static struct dp_error *compare(struct viewer *v)
{
	dp_auto_fclose FILE *owned = NULL;
	DP_TRY(open_output(v, &owned));
	DP_TRY(dp_view_against(v->options, v->sources, v->file, &v->damaged));
	return flush(v->file);
}

static struct dp_error *show(struct viewer *v)
{
	const struct dp_options *o = v->options;
	struct dp_view_asked asked = dp_view_asked_of(o);
	asked.aggregation = o->trace.asked.what ? &o->trace.asked : NULL;
	const struct dp_event_class *class;
	size_t n;
	dp_auto_fclose FILE *owned = NULL;
	DP_TRY(dp_view_add_traces(v->view, o));
	DP_TRY(dp_view_begin(v->view, &asked, &class, &n));
	if (dp_view_lacks(v->view))
		fprintf(stderr, "dynprobe: events of %s are left out: they have not all the fields\n", dp_view_lacks(v->view));
	DP_TRY(open_output(v, &owned));
	DP_TRY(asked.aggregation ? show_aggregations(v) : show_events(v, class, n));
	v->damaged = dp_view_report(v->view);
	return NULL;
}

int dp_command_view(const struct dp_options *options)
{
	struct viewer v = {.options = options};
	signal(SIGPIPE, SIG_IGN);
	v.sources = options->no_lines ? NULL : dp_source_lines_create(-1);
	struct dp_error *err = dp_view_create(&v.view);
	if (!err)
		err = options->view.against ? compare(&v) : show(&v);
	dp_outputs_say_missed(v.sources);
	dp_source_lines_destroy(v.sources);
	dp_view_destroy(v.view);
	const bool failed = err && !(err->tag == DP_TAG_OUTPUT && err->sys == EPIPE);
	if (failed)
		dp_error_print(err, stderr);
	dp_error_destroy(err);
	return failed ? DP_EXIT_FAILURE : v.damaged ? DP_EXIT_PARTIAL : 0;
}

/* SPDX-License-Identifier: MIT */
#include "cli/commands/pictures/report_events.h"

#include "output/timeline/timeline.h"
#include "output/totals/totals_page.h"
#include "session/view/view.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum dp_report_kind dp_report_kind(const char *name)
{
	struct stat st;
	if (!stat(name, &st) && S_ISDIR(st.st_mode))
		return DP_REPORT_TRACE;
	dp_auto_fclose FILE *f = fopen(name, "re");
	return f && getc(f) == '{' ? DP_REPORT_RUN : DP_REPORT_SNAPSHOT;
}

static void note_damage(const char *text, void *data)
{
	dp_timeline_note(data, text);
}

static void note_end(struct dp_timeline *t, struct dp_trace_view *view)
{
	char note[96];
	const uint64_t lost = dp_view_lost(view);
	if (lost) {
		snprintf(note, sizeof(note), "%" PRIu64 " hit%s lost while the trace was recorded", lost,
		         lost == 1 ? " was" : "s were");
		dp_timeline_note(t, note);
	}
	if (dp_timeline_events(t) == DP_TIMELINE_MOST)
		dp_timeline_note(t, "a page has the first 5,000,000 events at most: --from and --to choose others");
	dp_view_damages(view, note_damage, t);
}

static struct dp_error *put_events(struct dp_timeline *t, struct dp_trace_view *view, struct dp_timeline_trace *of)
{
	struct dp_event e;
	uint64_t lost = 0;
	while (dp_timeline_events(t) < DP_TIMELINE_MOST && dp_view_next(view, &e)) {
		if (dp_view_lost(view) != lost)
			dp_timeline_trace_gap(of);
		lost = dp_view_lost(view);
		DP_TRY(dp_timeline_trace_add(of, &e));
	}
	DP_TRY(dp_timeline_trace_end(of));
	note_end(t, view);
	return dp_timeline_end(t, dp_clock_offset());
}

static struct dp_error *put_trace(const struct dp_options *o, struct dp_timeline *t, struct dp_trace_view *view)
{
	const struct dp_view_asked asked = {
	        .when = o->view.when, .last_ns = o->view.last_ns, .from_ns = o->view.from_ns, .to_ns = o->view.to_ns};
	struct dp_timeline_trace *of = NULL;
	const struct dp_event_class *class;
	size_t n;
	DP_TRY(dp_view_add(view, o->name[0]));
	DP_TRY(dp_view_begin(view, &asked, &class, &n));
	DP_TRY(dp_timeline_trace_create(t, class, n, &of));
	struct dp_error *err = put_events(t, view, of);
	dp_timeline_trace_destroy(of);
	return err;
}

static struct dp_error *report_trace(const struct dp_options *o, struct dp_timeline *t)
{
	struct dp_trace_view *view = NULL;
	DP_TRY(dp_view_create(&view));
	struct dp_error *err = put_trace(o, t, view);
	dp_view_destroy(view);
	return err;
}

/* The name of the trace's folder, or of the file. */
static const char *title_of(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash && slash[1] ? slash + 1 : name;
}

static struct dp_error *put_timeline(const struct dp_options *o, FILE *run, FILE *to)
{
	struct dp_timeline *t = NULL;
	DP_TRY(dp_timeline_create(to, title_of(o->name[0]), &t));
	struct dp_error *err = run ? dp_timeline_json(t, run, o->name[0]) : report_trace(o, t);
	dp_timeline_destroy(t);
	return err;
}

static struct dp_error *report_run(const struct dp_options *o, FILE *to)
{
	if (o->view.when || o->view.last_ns || o->view.from_ns || o->view.to_ns)
		return dp_error(DP_TAG_USAGE, "--when, --last, --from and --to are for recorded traces: %s is a run's JSON",
		                o->name[0]);
	dp_auto_fclose FILE *from = fopen(o->name[0], "re");
	if (!from)
		return dp_error_sys(DP_TAG_BAD_TRACE, "cannot read %s", o->name[0]);
	return dp_totals_page_is(from) ? dp_totals_page(from, title_of(o->name[0]), to) : put_timeline(o, from, to);
}

struct dp_error *dp_report_events(const struct dp_options *o, enum dp_report_kind kind, FILE *to)
{
	return kind == DP_REPORT_TRACE ? put_timeline(o, NULL, to) : report_run(o, to);
}

/* SPDX-License-Identifier: MIT */
/* traces: lists the recorded traces, or removes some of them. */
#include "base/cleanup.h"
#include "cli/commands/command.h"
#include "output/format/put.h"
#include "session/traces/traces.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

struct traces {
	const struct dp_options *options;
	char *dir;
	struct dp_trace_list list;
	size_t done, failed;
};

/* ---- shown ----------------------------------------------------------------------------------------------------------------- */

static const char *size_text(uint64_t bytes, char ret[32])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t unit = 0;
	for (; value >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
		value /= 1024;
	snprintf(ret, 32, unit && value < 10 ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return ret;
}

static const char *length_text(uint64_t ns, char ret[32])
{
	const double s = (double)ns / (double)SECOND_NS;
	if (s < 1)
		snprintf(ret, 32, "%.3g ms", s * 1e3);
	else if (s < 600)
		snprintf(ret, 32, "%.1f s", s);
	else
		snprintf(ret, 32, "%.0f min", s / 60);
	return ret;
}

static void date_text(int64_t ns, char *ret, size_t size)
{
	const time_t at = (time_t)(ns / SECOND_NS);
	struct tm tm;
	if (!localtime_r(&at, &tm) || !strftime(ret, size, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(ret, size, "?");
}

static void show_text(const struct dp_trace_entry *e, const struct dp_trace_measure *m, int width)
{
	char date[32], length[32], size[32], events[32];
	date_text(m->begin_ns ? m->begin_ns : e->modified_ns, date, sizeof(date));
	snprintf(events, sizeof(events), "%s%" PRIu64, m->more ? ">" : "", m->events);
	printf("%-*s  %-15s  %s  %9s  %9s  %8s%s\n", width, e->name, e->program, date, length_text(m->length_ns, length), events,
	       size_text(e->bytes, size), m->damaged ? "  damaged" : "");
}

static void put_number(struct dp_buf *b, const char *key, uint64_t n)
{
	dp_buf_printf(b, ",\"%s\":%" PRIu64, key, n);
}

static void show_json(const struct dp_trace_entry *e, const struct dp_trace_measure *m)
{
	struct dp_buf b = {0};
	dp_put_json_member(&b, "{\"type\":\"trace\",", "name", e->name);
	dp_put_json_member(&b, ",", "path", e->path);
	dp_put_json_member(&b, ",", "program", e->program);
	put_number(&b, "begin_ns", (uint64_t)m->begin_ns);
	put_number(&b, "length_ns", m->length_ns);
	put_number(&b, "modified_ns", (uint64_t)e->modified_ns);
	put_number(&b, "bytes", e->bytes);
	put_number(&b, "events", m->events);
	put_number(&b, "pieces", e->pieces);
	dp_buf_printf(&b, ",\"events_more\":%s,\"damaged\":%s}", m->more ? "true" : "false", m->damaged ? "true" : "false");
	puts(dp_buf_str(&b));
	dp_buf_fini(&b);
}

static bool is_wanted(const struct dp_options *o, const char *name)
{
	for (size_t i = 0; i < o->nnames; i++)
		if (!fnmatch(o->name[i], name, 0))
			return true;
	return !o->nnames;
}

static void note_names_without_a_trace(const struct traces *t)
{
	for (size_t i = 0; i < t->options->nnames && t->list.n; i++) {
		size_t k = 0;
		while (k < t->list.n && fnmatch(t->options->name[i], t->list.item[k].name, 0))
			k++;
		if (k == t->list.n)
			fprintf(stderr, "dynprobe: no trace in %s is named '%s' (patterns such as '*redis*' match a part)\n", t->dir,
			        t->options->name[i]);
	}
}

static struct dp_error *show(struct traces *t)
{
	const bool json = t->options->format == DP_FORMAT_JSON;
	int width = 0;
	for (size_t i = 0; i < t->list.n; i++)
		width = (int)strlen(t->list.item[i].name) > width ? (int)strlen(t->list.item[i].name) : width;
	if (!t->list.n && !json)
		fprintf(stderr, "dynprobe: no recorded traces in %s\n", t->dir);
	else if (!json)
		printf("%-*s  %-15s  %-19s  %9s  %9s  %8s\n", width, "NAME", "PROGRAM", "BEGINS", "LENGTH", "EVENTS", "SIZE");
	for (size_t i = 0; i < t->list.n; i++) {
		const struct dp_trace_entry *e = &t->list.item[i];
		struct dp_trace_measure m;
		if (!is_wanted(t->options, e->name))
			continue;
		struct dp_error *err = dp_traces_measure(e->path, &m);
		m.damaged |= err != NULL;
		if (json)
			show_json(e, &m);
		else
			show_text(e, &m, width);
		dp_error_destroy(err);
	}
	note_names_without_a_trace(t);
	return fflush(stdout) ? dp_error_sys(DP_TAG_OUTPUT, "writing the list") : NULL;
}

/* ---- removed --------------------------------------------------------------------------------------------------------------- */

static void remove_one(struct traces *t, const char *path)
{
	struct dp_error *err = dp_traces_remove(path);
	if (err)
		dp_error_print(err, stderr);
	else
		printf("removed %s\n", path);
	t->failed += err != NULL;
	t->done += !err;
	dp_error_destroy(err);
}

/* A name in the default directory, which may be a pattern; or a path. */
static void remove_named(struct traces *t, const char *name)
{
	size_t n = 0;
	if (strchr(name, '/')) {
		remove_one(t, name);
		return;
	}
	for (size_t i = 0; i < t->list.n; i++)
		if (!fnmatch(name, t->list.item[i].name, 0)) {
			remove_one(t, t->list.item[i].path);
			n++;
		}
	if (n)
		return;
	fprintf(stderr, "dynprobe: error: there is no trace '%s' of dynprobe in %s; dynprobe traces lists them [%s]\n", name,
	        t->dir, dp_tag_name(DP_TAG_BAD_TRACE));
	t->failed++;
}

static void remove_old(struct traces *t, uint64_t age_ns)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	const int64_t before = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec - (int64_t)age_ns;
	for (size_t i = 0; i < t->list.n; i++)
		if (t->list.item[i].modified_ns < before && is_wanted(t->options, t->list.item[i].name))
			remove_one(t, t->list.item[i].path);
	if (!t->done && !t->failed)
		fprintf(stderr, "dynprobe: no trace is so old\n");
}

static void remove_all(struct traces *t)
{
	const struct dp_options *o = t->options;
	for (size_t i = 0; i < o->traces.remove.n; i++)
		remove_named(t, o->traces.remove.item[i]);
	for (size_t i = 0; i < o->nnames && o->traces.remove.n; i++)
		remove_named(t, o->name[i]);
	if (o->traces.older_ns)
		remove_old(t, o->traces.older_ns);
}

static struct dp_error *run(struct traces *t)
{
	t->dir = dp_traces_dir();
	if (!t->dir)
		return dp_error(DP_TAG_OUTPUT, "there is no home directory: set HOME");
	DP_TRY(dp_traces_list(t->dir, &t->list));
	if (!t->options->traces.remove.n && !t->options->traces.older_ns)
		return show(t);
	remove_all(t);
	return NULL;
}

int dp_command_traces(const struct dp_options *options)
{
	struct traces t = {.options = options};
	struct dp_error *err = run(&t);
	const bool failed = err || (t.failed && !t.done);
	dp_error_print(err, stderr);
	dp_error_destroy(err);
	dp_traces_fini(&t.list);
	free(t.dir);
	return failed ? DP_EXIT_FAILURE : t.failed ? DP_EXIT_PARTIAL : 0;
}

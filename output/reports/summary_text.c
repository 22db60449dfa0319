/* SPDX-License-Identifier: MIT */
/*
 * The summary as text: the probes and what became of them, then hits and losses, then the pauses of the target. Losses and
 * refusals are always shown; empty sections are omitted.
 */
#include "output/format/put.h"
#include "output/reports/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 64, LISTED = 20, PROCESSES = 10 };

#define GOOD  "\033[32m"
#define BAD   "\033[1;31m"
#define RESET "\033[0m"

struct out {
	struct dp_buf b;
	bool color;
};

static void colored(struct out *o, const char *color, const char *text)
{
	bool on = o->color && *color;
	dp_put_str(&o->b, on ? color : "");
	dp_put_str(&o->b, text);
	dp_put_str(&o->b, on ? RESET : "");
}

/* The label at the left of a line. */
static void label(struct out *o, const char *color, const char *text)
{
	dp_put_str(&o->b, "  ");
	colored(o, color, text);
	dp_buf_printf(&o->b, "%*s", (int)(10 - strlen(text)), "");
}

/* 0: processes that have ended, in one row. */
static void put_pid(struct out *o, pid_t pid)
{
	if (pid)
		dp_buf_printf(&o->b, "%-8d", pid);
	else
		dp_put_str(&o->b, "ended   ");
}

/* Untrusted text, first line only, padded to `width` characters. */
static void cell(struct out *o, const char *text, size_t width)
{
	size_t len = strcspn(text, "\n");
	dp_put_visible(&o->b, text, len, 0);
	if (len < width)
		dp_buf_printf(&o->b, "%*s", (int)(width - len), "");
}

/* ---- requested probes ---- */

static void put_groups(struct out *o, const struct dp_summary *s, const char *(*word)(const struct dp_summary_probe *))
{
	struct dp_group groups[GROUPS];
	size_t n = dp_summary_group(s, word, groups, GROUPS);
	for (size_t i = 0; i < n; i++) {
		bool tag_first = !strncmp(groups[i].word, "DP-", 3);
		dp_put_str(&o->b, i ? ", " : " (");
		if (tag_first)
			dp_buf_printf(&o->b, "%s %zu", groups[i].word, groups[i].n);
		else
			dp_buf_printf(&o->b, "%zu %s", groups[i].n, groups[i].word);
	}
	dp_put_str(&o->b, n ? ")" : "");
}

static void put_count(struct out *o, const char *color, size_t n, const char *what)
{
	char text[64];
	snprintf(text, sizeof(text), "%zu %s", n, what);
	dp_put_str(&o->b, ", ");
	colored(o, n ? color : "", text);
}

static void put_asked(struct out *o, const struct dp_summary *s, const struct dp_counts *all)
{
	dp_buf_printf(&o->b, "dynprobe: %zu probe%s requested", s->n, s->n == 1 ? "" : "s");
	put_count(o, GOOD, all->placed, "placed");
	put_groups(o, s, dp_summary_tactic);
	if (all->refused > all->left_out) {
		put_count(o, BAD, all->refused - all->left_out, "refused");
		put_groups(o, s, dp_summary_trouble_tag);
	}
	if (all->left_out) {
		put_count(o, "", all->left_out, "left out of patterns");
		put_groups(o, s, dp_summary_left_out_tag);
	}
	if (all->retired)
		put_count(o, BAD, all->retired, "retired");
	dp_put_str(&o->b, "\n");
}

static bool several_targets(const struct dp_summary *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (s->probe[i].pid != s->probe[0].pid)
			return true;
	return false;
}

static bool is_trouble(const struct dp_summary_probe *p)
{
	return (!p->tactic && !p->left_out) || p->retired;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Widths of the columns `spec` and `tag` for the listed probes. */
static void trouble_widths(const struct dp_summary *s, size_t *spec, size_t *tag)
{
	*spec = *tag = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct dp_summary_probe *p = &s->probe[i];
		if (!is_trouble(p))
			continue;
		*spec = strlen(p->spec) > *spec ? min_size(strlen(p->spec), 40) : *spec;
		*tag = p->tag && strlen(p->tag) > *tag ? strlen(p->tag) : *tag;
	}
}

static void put_trouble(struct out *o, const struct dp_summary *s)
{
	size_t spec, tag, listed = 0, left = 0;
	bool pids = several_targets(s);
	trouble_widths(s, &spec, &tag);
	for (size_t i = 0; i < s->n; i++) {
		const struct dp_summary_probe *p = &s->probe[i];
		if (!is_trouble(p))
			continue;
		if (listed++ >= LISTED) {
			left++;
			continue;
		}
		label(o, BAD, p->tactic ? "retired" : "refused");
		if (pids)
			put_pid(o, p->pid);
		cell(o, p->spec, spec);
		dp_put_str(&o->b, "  ");
		cell(o, p->tag ? p->tag : "", p->reason ? tag : 0);
		dp_put_str(&o->b, p->reason ? "  " : "");
		cell(o, p->reason ? p->reason : "", 0);
		dp_put_str(&o->b, "\n");
	}
	if (left)
		dp_buf_printf(&o->b, "            ... and %zu more\n", left);
}

/* ---- hits ---- */

static void put_losses(struct out *o, const struct dp_counts *c)
{
	const char *before = " (";
	for (size_t i = 0; i < DP_LOSS_COUNT; i++)
		if (c->loss[i]) {
			dp_buf_printf(&o->b, "%s%s %" PRIu64, before, dp_loss_names[i].text, c->loss[i]);
			before = ", ";
		}
	dp_put_str(&o->b, c->lost ? ")" : "");
}

/* LTTng has the events, and reports to its own reader those that it discards. */
static void put_session(struct out *o, const struct dp_summary *s, const struct dp_counts *all)
{
	char lost[48];
	snprintf(lost, sizeof(lost), "not emitted %" PRIu64, all->lost);
	label(o, "", "events");
	dp_put_str(&o->b, "in the LTTng session ");
	cell(o, s->session, 0);
	dp_put_str(&o->b, "   ");
	colored(o, all->lost ? BAD : "", lost);
	put_losses(o, all);
	dp_put_str(&o->b, "\n");
}

static void put_hits(struct out *o, const struct dp_summary *s, const struct dp_counts *all)
{
	char lost[32];
	if (!all->placed)
		return;
	if (s->session) {
		put_session(o, s, all);
		return;
	}
	snprintf(lost, sizeof(lost), "lost %" PRIu64, all->lost);
	label(o, "", "hits");
	dp_buf_printf(&o->b, "%" PRIu64 "   recorded %" PRIu64 "   ", all->recorded + all->lost, all->recorded);
	colored(o, all->lost ? BAD : "", lost);
	put_losses(o, all);
	dp_put_str(&o->b, "\n");
}

static uint64_t hits(const struct dp_summary_probe *p)
{
	struct dp_counts c = dp_summary_count(p, 1);
	return c.recorded + c.lost;
}

static int by_hits(const void *a, const void *b)
{
	const struct dp_summary_probe *p = *(const struct dp_summary_probe *const *)a,
	                              *q = *(const struct dp_summary_probe *const *)b;
	uint64_t x = hits(p), y = hits(q);
	/* Equal ones stay in the order in which they were requested. */
	return x != y ? (x < y ? 1 : -1) : p < q ? -1 : 1;
}

static void put_row(struct out *o, const struct dp_summary_probe *p, size_t width, bool pids)
{
	struct dp_counts c = dp_summary_count(p, 1);
	char lost[32];
	dp_put_str(&o->b, "    ");
	if (pids)
		put_pid(o, p->pid);
	cell(o, p->name, width);
	dp_buf_printf(&o->b, "  %12" PRIu64 "  %12" PRIu64 "  ", c.recorded + c.lost, c.recorded);
	snprintf(lost, sizeof(lost), "%12" PRIu64, c.lost);
	colored(o, c.lost ? BAD : "", lost);
	dp_put_str(&o->b, "  ");
	dp_put_str(&o->b, p->tactic);
	dp_put_str(&o->b, "\n");
}

static void put_rows(struct out *o, const struct dp_summary_probe **rows, size_t n, bool pids)
{
	size_t width = strlen("probe");
	for (size_t i = 0; i < n; i++)
		width = strlen(rows[i]->name) > width ? min_size(strlen(rows[i]->name), 40) : width;
	qsort(rows, n, sizeof(*rows), by_hits);
	dp_put_str(&o->b, "    ");
	dp_put_str(&o->b, pids ? "pid     " : "");
	dp_buf_printf(&o->b, "%-*s  %12s  %12s  %12s  by\n", (int)width, "probe", "hits", "recorded", "lost");
	for (size_t i = 0; i < n && i < LISTED; i++)
		put_row(o, rows[i], width, pids);
	if (n > LISTED)
		dp_buf_printf(&o->b, "    ... and %zu more\n", n - LISTED);
}

/* A row per placed probe, the one with most hits first; only if there are several. */
static void put_table(struct out *o, const struct dp_summary *s)
{
	const struct dp_summary_probe **rows = calloc(s->n + 1, sizeof(*rows));
	size_t n = 0, silent = 0;
	for (size_t i = 0; rows && i < s->n; i++) {
		const struct dp_summary_probe *p = &s->probe[i];
		if (!p->tactic)
			continue;
		if (p->is_call && !p->retired && !hits(p))
			silent++;
		else
			rows[n++] = p;
	}
	if (n > 1 || (n && silent))
		put_rows(o, rows, n, several_targets(s));
	if (silent)
		dp_buf_printf(&o->b, "    %zu probe%s of system calls without a hit\n", silent, silent == 1 ? "" : "s");
	free(rows);
}

/* ---- processes ---- */

static int process_by_hits(const void *a, const void *b)
{
	const struct dp_process_counts *p = a, *q = b;
	const uint64_t x = p->counts.recorded + p->counts.lost, y = q->counts.recorded + q->counts.lost;
	return x != y ? (x < y ? 1 : -1) : (p->pid > q->pid) - (p->pid < q->pid);
}

static void put_process(struct out *o, const struct dp_process_counts *p)
{
	char lost[32];
	dp_put_str(&o->b, "    ");
	put_pid(o, p->pid);
	cell(o, p->comm ? p->comm : "", 15);
	dp_buf_printf(&o->b, "  %12" PRIu64 "  %12" PRIu64 "  ", p->counts.recorded + p->counts.lost, p->counts.recorded);
	snprintf(lost, sizeof(lost), "%12" PRIu64, p->counts.lost);
	colored(o, p->counts.lost ? BAD : "", lost);
	dp_put_str(&o->b, "\n");
}

/* Those with probes, the one with most hits first; only if there are several, and the table of probes does not show the same. */
static void put_processes(struct out *o, const struct dp_summary *s)
{
	struct dp_process_counts one, *row = calloc(s->n + 1, sizeof(*row));
	size_t n = 0, probes = 0;
	for (size_t i = 0; row && dp_summary_process(s, &i, &one);)
		if (one.counts.placed) {
			row[n++] = one;
			probes += one.counts.placed;
		}
	if (n > 1 && probes > n) {
		qsort(row, n, sizeof(*row), process_by_hits);
		dp_buf_printf(&o->b, "    pid     %-15s  %12s  %12s  %12s\n", "process", "hits", "recorded", "lost");
		for (size_t i = 0; i < n && i < PROCESSES; i++)
			put_process(o, &row[i]);
		if (n > PROCESSES)
			dp_buf_printf(&o->b, "    ... and %zu more\n", n - PROCESSES);
	}
	free(row);
}

/* ---- pauses of the target, and where the events are ---- */

/* The longest of several stops alone tells little. */
static void put_stops(struct out *o, const struct dp_summary_stops *s)
{
	if (s->stops < 2)
		return;
	dp_buf_printf(&o->b, " (%u stops, %" PRIu64 " us in total", s->stops, s->held_ns / 1000);
	if (s->vain)
		dp_buf_printf(&o->b, ", %u given up", s->vain);
	dp_put_str(&o->b, ")");
}

static void put_pause(struct out *o, const struct dp_summary *s)
{
	label(o, "", "pause");
	dp_buf_printf(&o->b, "attach %" PRIu64 " us", s->pause_attach_ns / 1000);
	put_stops(o, &s->attach);
	dp_buf_printf(&o->b, ", detach %" PRIu64 " us", s->pause_detach_ns / 1000);
	put_stops(o, &s->detach);
	if (s->attach_ns)
		dp_buf_printf(&o->b, "   (armed after %.1f ms", (double)s->attach_ns / 1e6);
	if (s->attach_ns && s->armed_ns)
		dp_buf_printf(&o->b, " for %.3f s, removed in %.1f ms", (double)s->armed_ns / 1e9, (double)s->detach_ns / 1e6);
	dp_put_str(&o->b, s->attach_ns ? ")" : "");
	dp_put_str(&o->b, "\n");
}

static void put_line(struct out *o, const char *color, const char *name, const char *text)
{
	if (!text)
		return;
	label(o, color, name);
	cell(o, text, 0);
	dp_put_str(&o->b, "\n");
}

static void put_pieces(struct out *o, const struct dp_record_pieces *p)
{
	if (!p)
		return;
	dp_buf_printf(&o->b, "            %u trace%s in it", p->kept, p->kept == 1 ? "" : "s");
	if (p->removed)
		dp_buf_printf(&o->b, "; %u older removed, with %" PRIu64 " events", p->removed, p->events);
	dp_put_str(&o->b, "\n");
}

static void put_inner(struct out *o, const struct dp_summary *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct dp_summary_probe *p = &s->probe[i];
		if (!p->inner_pid || (i && p->pid == p[-1].pid))
			continue;
		label(o, "", "process");
		dp_buf_printf(&o->b, "%d (inner %d)\n", p->pid, p->inner_pid);
	}
}

static void put_by_calls(struct out *o, const struct dp_summary *s)
{
	if (!s->by_calls)
		return;
	label(o, "", "memory");
	dp_put_str(&o->b, "read by system calls, which takes microseconds");
	if (s->by_calls_ns)
		dp_buf_printf(&o->b, ", for %.1f ms", (double)s->by_calls_ns / 1e6);
	dp_put_str(&o->b, ": ");
	cell(o, s->by_calls, 0);
	dp_put_str(&o->b, "\n");
}

static void put_left(struct out *o, const struct dp_summary *s)
{
	if (!s->left_bytes)
		return;
	label(o, BAD, "left");
	dp_buf_printf(&o->b, "%zu bytes stay in the target", s->left_bytes);
	dp_put_str(&o->b, s->left_why ? ": " : "");
	cell(o, s->left_why ? s->left_why : "", 0);
	dp_put_str(&o->b, "\n");
}

static const char *children(size_t n)
{
	return n == 1 ? "child" : "children";
}

static void put_child(struct out *o, const struct dp_summary_child *c)
{
	label(o, BAD, "left");
	dp_buf_printf(&o->b, "probes in fork child %d (", c->pid);
	cell(o, c->comm, 0);
	dp_put_str(&o->b, "): ");
	cell(o, c->why, 0);
	dp_buf_printf(&o->b, " [%s]\n", c->tag);
}

static void put_children(struct out *o, const struct dp_summary_children *c)
{
	if (!c)
		return;
	if (c->asked) {
		label(o, "", "followed");
		dp_buf_printf(&o->b, "%u fork %s\n", c->followed, children(c->followed));
	}
	if (c->cleaned) {
		label(o, "", "cleaned");
		dp_buf_printf(&o->b, "%u fork %s, which had inherited the probes\n", c->cleaned, children(c->cleaned));
	}
	for (size_t i = 0; i < c->nleft && i < LISTED; i++)
		put_child(o, &c->left[i]);
	if (c->nleft > LISTED)
		dp_buf_printf(&o->b, "            ... and in %zu more\n", c->nleft - LISTED);
}

static void put_waits(struct out *o, const struct dp_summary_waits *w)
{
	if (!w || !w->hits)
		return;
	label(o, "", "waited");
	dp_buf_printf(&o->b, "%" PRIu64 " hit%s for room in a ring, %.3f s in all", w->hits, w->hits == 1 ? "" : "s",
	              (double)w->ns / 1e9);
	if (w->late)
		put_count(o, BAD, w->late, "in vain");
	dp_put_str(&o->b, "\n");
}

static void put_programs(struct out *o, const struct dp_summary_programs *p)
{
	if (!p)
		return;
	label(o, "", "started");
	dp_buf_printf(&o->b, "%u process%s", p->started, p->started == 1 ? "" : "es");
	if (p->late)
		dp_buf_printf(&o->b, ", %u of them probed late", p->late);
	if (p->unprobed)
		put_count(o, BAD, p->unprobed, "not probed");
	dp_put_str(&o->b, "\n");
	if (!p->denied)
		return;
	label(o, BAD, "denied");
	dp_buf_printf(&o->b, "%u process%s not looked at, because this user may not\n", p->denied, p->denied == 1 ? "" : "es");
}

void dp_summary_text(const struct dp_summary *s, FILE *to, bool color)
{
	struct out o = {.color = color};
	struct dp_counts all = dp_summary_count(s->probe, s->n);
	put_asked(&o, s, &all);
	put_trouble(&o, s);
	put_hits(&o, s, &all);
	if (!s->session) {
		put_processes(&o, s);
		put_table(&o, s);
	}
	if (all.placed && (s->attach_ns || s->pause_detach_ns))
		put_pause(&o, s);
	put_waits(&o, s->waits);
	put_inner(&o, s);
	put_by_calls(&o, s);
	put_left(&o, s);
	put_children(&o, s->children);
	put_programs(&o, s->programs);
	put_line(&o, "", "ended by", s->ended_by);
	put_line(&o, "", "trace", s->record_dir);
	put_pieces(&o, s->pieces);
	fwrite(dp_buf_str(&o.b), 1, o.b.len, to);
	dp_buf_fini(&o.b);
}

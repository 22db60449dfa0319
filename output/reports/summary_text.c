/* SPDX-License-Identifier: MIT */
/*
 * The summary as text: the probes and what became of them, then hits and losses, then the pauses of the target. Losses and
 * refusals are always shown; empty sections are omitted.
 */
#include "base/cleanup.h"
#include "output/format/put.h"
#include "output/reports/summary_table.h"
#include "probes/elf/demangle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 64 };

/* The label at the left of a line. */
static void label(struct dp_summary_out *o, const char *color, const char *text)
{
	dp_put_str(&o->b, "  ");
	dp_summary_colored(o, color, text);
	dp_buf_printf(&o->b, "%*s", (int)(10 - strlen(text)), "");
}

/* ---- requested probes ---- */

static void put_groups(struct dp_summary_out *o, const struct dp_summary *s, const char *(*word)(const struct dp_summary_probe *))
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

static void put_count(struct dp_summary_out *o, const char *color, size_t n, const char *what)
{
	char text[64];
	snprintf(text, sizeof(text), "%zu %s", n, what);
	dp_put_str(&o->b, ", ");
	dp_summary_colored(o, n ? color : "", text);
}

/* "3 probes", or for a run over several processes "1 probe in 3 processes". */
static void put_number(struct dp_summary_out *o, const struct dp_summary *s, size_t placed, size_t wanted)
{
	const size_t probes = dp_summary_probes(s), processes = dp_summary_processes(s);
	dp_put_str(&o->b, "dynprobe: ");
	if (processes > 1 && placed == wanted)
		dp_buf_printf(&o->b, "%zu probe%s in %zu processes", probes, probes == 1 ? "" : "s", processes);
	else if (processes > 1)
		dp_buf_printf(&o->b, "%zu of %zu places of %zu probe%s in %zu processes", placed, wanted, probes,
		              probes == 1 ? "" : "s", processes);
	else if (placed == wanted)
		dp_buf_printf(&o->b, "%zu probe%s", placed, placed == 1 ? "" : "s");
	else
		dp_buf_printf(&o->b, "%zu of %zu probe%s", placed, wanted, wanted == 1 ? "" : "s");
}

static void put_asked(struct dp_summary_out *o, const struct dp_summary *s, const struct dp_counts *all)
{
	put_number(o, s, all->placed, s->n - all->left_out);
	dp_put_str(&o->b, " ");
	dp_summary_colored(o, all->placed ? DP_SUMMARY_GOOD : "", "placed");
	if (s->verbose)
		put_groups(o, s, dp_summary_tactic);
	if (all->refused > all->left_out) {
		put_count(o, DP_SUMMARY_BAD, all->refused - all->left_out, "refused");
		put_groups(o, s, dp_summary_trouble_tag);
	}
	if (all->left_out) {
		put_count(o, "", all->left_out,
		          all->left_out == 1 ? "place of a pattern left out" : "places of patterns left out");
		put_groups(o, s, dp_summary_left_out_tag);
	}
	if (all->retired)
		put_count(o, DP_SUMMARY_BAD, all->retired, "retired");
	dp_put_str(&o->b, "\n");
}

static bool is_trouble(const struct dp_summary_probe *p)
{
	return (!p->tactic && !p->left_out) || p->retired;
}

/* Widths of the columns `spec` and `tag` for the listed probes. */
static void trouble_widths(const struct dp_summary *s, size_t *spec, size_t *tag)
{
	*spec = *tag = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct dp_summary_probe *p = &s->probe[i];
		if (!is_trouble(p))
			continue;
		*spec = strlen(p->spec) > *spec ? dp_summary_smaller(strlen(p->spec), 40) : *spec;
		*tag = p->tag && strlen(p->tag) > *tag ? strlen(p->tag) : *tag;
	}
}

static void put_readable(struct dp_summary_out *o, const char *text, size_t width)
{
	dp_auto_free char *readable = dp_demangle_text(text);
	dp_summary_cell(o, readable ? readable : text, width);
}

static void put_trouble(struct dp_summary_out *o, const struct dp_summary *s)
{
	size_t spec, tag, listed = 0, left = 0;
	bool pids = dp_summary_has_targets(s);
	trouble_widths(s, &spec, &tag);
	for (size_t i = 0; i < s->n; i++) {
		const struct dp_summary_probe *p = &s->probe[i];
		if (!is_trouble(p))
			continue;
		if (listed++ >= DP_SUMMARY_LISTED) {
			left++;
			continue;
		}
		label(o, DP_SUMMARY_BAD, p->tactic ? "retired" : "refused");
		if (pids)
			dp_summary_put_pid(o, p->pid);
		put_readable(o, p->spec, spec);
		dp_put_str(&o->b, "  ");
		dp_summary_cell(o, p->tag ? p->tag : "", p->reason ? tag : 0);
		dp_put_str(&o->b, p->reason ? "  " : "");
		put_readable(o, p->reason ? p->reason : "", 0);
		dp_put_str(&o->b, "\n");
	}
	if (left)
		dp_buf_printf(&o->b, "            ... and %zu more\n", left);
}

/* ---- hits ---- */

static void put_losses(struct dp_summary_out *o, const struct dp_counts *c)
{
	const char *before = " (";
	for (size_t i = 0; i < DP_LOSS_COUNT; i++)
		if (c->loss[i]) {
			dp_buf_printf(&o->b, "%s%s %" PRIu64, before, dp_loss_names[i].text, c->loss[i]);
			before = ", ";
		}
	dp_put_str(&o->b, c->lost ? ")" : "");
}

/* What to do so that it does not happen again. */
static void put_advice(struct dp_summary_out *o, const struct dp_counts *c)
{
	for (size_t i = 0; i < DP_LOSS_COUNT; i++)
		if (c->loss[i] && dp_loss_names[i].advice)
			dp_buf_printf(&o->b, "            %s: %s\n", dp_loss_names[i].text, dp_loss_names[i].advice);
}

/* LTTng has the events, and reports to its own reader those that it discards. */
static void put_session(struct dp_summary_out *o, const struct dp_summary *s, const struct dp_counts *all)
{
	char lost[48];
	snprintf(lost, sizeof(lost), "not emitted %" PRIu64, all->lost);
	label(o, "", "events");
	dp_put_str(&o->b, "in the LTTng session ");
	dp_summary_cell(o, s->session, 0);
	dp_put_str(&o->b, "   ");
	dp_summary_colored(o, all->lost ? DP_SUMMARY_BAD : "", lost);
	put_losses(o, all);
	dp_put_str(&o->b, "\n");
	put_advice(o, all);
}

static void put_hits(struct dp_summary_out *o, const struct dp_summary *s, const struct dp_counts *all)
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
	dp_summary_colored(o, all->lost ? DP_SUMMARY_BAD : "", lost);
	put_losses(o, all);
	dp_put_str(&o->b, "\n");
	put_advice(o, all);
}

/* ---- pauses of the target, and where the events are ---- */

static void put_time(struct dp_summary_out *o, const char *before, uint64_t ns)
{
	dp_put_str(&o->b, before);
	dp_put_duration(&o->b, ns);
}

/* How long the program waited; the longest of several stops alone tells little. */
static void put_pause(struct dp_summary_out *o, const struct dp_summary *s, uint64_t ns, const struct dp_summary_stops *stops)
{
	if (!ns)
		return;
	put_time(o, " (program paused ", ns);
	if (s->verbose && stops->stops > 1) {
		dp_buf_printf(&o->b, ": %u stops, ", stops->stops);
		dp_put_duration(&o->b, stops->held_ns);
		dp_put_str(&o->b, " in total");
		if (stops->vain)
			dp_buf_printf(&o->b, ", %u given up", stops->vain);
	}
	dp_put_str(&o->b, ")");
}

static void put_times(struct dp_summary_out *o, const struct dp_summary *s)
{
	label(o, "", "probed");
	if (s->armed_ns)
		put_time(o, "for ", s->armed_ns);
	dp_put_str(&o->b, s->armed_ns ? "; " : "");
	dp_put_str(&o->b, "placed");
	if (s->attach_ns)
		put_time(o, " in ", s->attach_ns);
	if (!s->launched)
		put_pause(o, s, s->pause_attach_ns, &s->attach);
	if (s->armed_ns || s->pause_detach_ns) {
		dp_put_str(&o->b, ", removed");
		if (s->armed_ns)
			put_time(o, " in ", s->detach_ns);
		put_pause(o, s, s->pause_detach_ns, &s->detach);
	}
	dp_put_str(&o->b, "\n");
}

static void put_line(struct dp_summary_out *o, const char *color, const char *name, const char *text)
{
	if (!text)
		return;
	label(o, color, name);
	dp_summary_cell(o, text, 0);
	dp_put_str(&o->b, "\n");
}

static void put_pieces(struct dp_summary_out *o, const struct dp_record_pieces *p)
{
	if (!p)
		return;
	dp_buf_printf(&o->b, "            %u trace%s in it", p->kept, p->kept == 1 ? "" : "s");
	if (p->removed)
		dp_buf_printf(&o->b, "; %u older removed, with %" PRIu64 " events", p->removed, p->events);
	dp_put_str(&o->b, "\n");
}

static void put_inner(struct dp_summary_out *o, const struct dp_summary *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct dp_summary_probe *p = &s->probe[i];
		if (!p->inner_pid || (i && p->pid == p[-1].pid))
			continue;
		label(o, "", "process");
		dp_buf_printf(&o->b, "%d (inner %d)\n", p->pid, p->inner_pid);
	}
}

static void put_by_calls(struct dp_summary_out *o, const struct dp_summary *s)
{
	if (!s->by_calls)
		return;
	label(o, "", "memory");
	dp_put_str(&o->b, "read by system calls, which takes microseconds");
	if (s->by_calls_ns)
		put_time(o, ", for ", s->by_calls_ns);
	dp_put_str(&o->b, ": ");
	dp_summary_cell(o, s->by_calls, 0);
	dp_put_str(&o->b, "\n");
}

static void put_left(struct dp_summary_out *o, const struct dp_summary *s)
{
	if (!s->left_bytes && !s->left_sites)
		return;
	label(o, DP_SUMMARY_BAD, "left");
	if (s->left_sites)
		dp_buf_printf(&o->b, "%zu changed place%s of text and ", s->left_sites, s->left_sites == 1 ? "" : "s");
	dp_buf_printf(&o->b, "%zu bytes stay in the target", s->left_bytes);
	dp_put_str(&o->b, s->left_why ? ": " : "");
	dp_summary_cell(o, s->left_why ? s->left_why : "", 0);
	dp_put_str(&o->b, "\n");
}

static const char *children(size_t n)
{
	return n == 1 ? "child" : "children";
}

static void put_child(struct dp_summary_out *o, const struct dp_summary_child *c)
{
	label(o, DP_SUMMARY_BAD, "left");
	dp_buf_printf(&o->b, "probes in fork child %d (", c->pid);
	dp_summary_cell(o, c->comm, 0);
	dp_put_str(&o->b, "): ");
	dp_summary_cell(o, c->why, 0);
	dp_buf_printf(&o->b, " [%s]\n", c->tag);
}

static void put_children(struct dp_summary_out *o, const struct dp_summary_children *c)
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
	for (size_t i = 0; i < c->nleft && i < DP_SUMMARY_LISTED; i++)
		put_child(o, &c->left[i]);
	if (c->nleft > DP_SUMMARY_LISTED)
		dp_buf_printf(&o->b, "            ... and in %zu more\n", c->nleft - DP_SUMMARY_LISTED);
}

static void put_waits(struct dp_summary_out *o, const struct dp_summary_waits *w)
{
	if (!w || !w->hits)
		return;
	label(o, "", "waited");
	dp_buf_printf(&o->b, "%" PRIu64 " hit%s for room in a ring, ", w->hits, w->hits == 1 ? "" : "s");
	dp_put_duration(&o->b, w->ns);
	dp_put_str(&o->b, " in all");
	if (w->late)
		put_count(o, DP_SUMMARY_BAD, w->late, "in vain");
	dp_put_str(&o->b, "\n");
}

static void put_programs(struct dp_summary_out *o, const struct dp_summary_programs *p)
{
	if (!p)
		return;
	label(o, "", "started");
	dp_buf_printf(&o->b, "%u process%s", p->started, p->started == 1 ? "" : "es");
	if (p->late)
		dp_buf_printf(&o->b, ", %u of them probed late", p->late);
	if (p->unprobed)
		put_count(o, DP_SUMMARY_BAD, p->unprobed, "not probed");
	dp_put_str(&o->b, "\n");
	if (!p->denied)
		return;
	label(o, DP_SUMMARY_BAD, "denied");
	dp_buf_printf(&o->b, "%u process%s not looked at, because this user may not\n", p->denied, p->denied == 1 ? "" : "es");
}

void dp_summary_text(const struct dp_summary *s, FILE *to, bool color)
{
	struct dp_summary_out o = {.color = color, .width = dp_summary_width(to), .ended = dp_summary_ended(s)};
	struct dp_counts all = dp_summary_count(s->probe, s->n);
	put_asked(&o, s, &all);
	put_trouble(&o, s);
	put_hits(&o, s, &all);
	if (!s->session)
		dp_summary_put_tables(&o, s);
	if (all.placed && (s->attach_ns || s->pause_detach_ns))
		put_times(&o, s);
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

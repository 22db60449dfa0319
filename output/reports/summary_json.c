/* SPDX-License-Identifier: MIT */
/* The summary as JSON, one line (docs/json.md). */
#include "output/format/put.h"
#include "output/reports/summary.h"

#include <string.h>

static void put_key(struct dp_buf *b, const char *before, const char *key)
{
	dp_put_str(b, before);
	dp_put_json_str(b, key);
	dp_put_str(b, ":");
}

static void put_number(struct dp_buf *b, const char *key, uint64_t v)
{
	put_key(b, ",", key);
	dp_put_dec(b, v);
}

static void put_string(struct dp_buf *b, const char *key, const char *s)
{
	put_key(b, ",", key);
	if (s)
		dp_put_json_str(b, s);
	else
		dp_put_str(b, "null");
}

/* "hits":..,"recorded":..,"lost":{"total":..,"full":..}; null for what only LTTng can count. */
static void put_counts(struct dp_buf *b, const struct dp_counts *c, bool counted)
{
	if (counted) {
		put_number(b, "hits", c->recorded + c->lost);
		put_number(b, "recorded", c->recorded);
	} else {
		put_string(b, "hits", NULL);
		put_string(b, "recorded", NULL);
	}
	put_key(b, ",", "lost");
	put_key(b, "{", "total");
	dp_put_dec(b, c->lost);
	for (size_t i = 0; i < DP_LOSS_COUNT; i++)
		put_number(b, dp_loss_names[i].key, c->loss[i]);
	dp_put_str(b, "}");
}

static void put_groups(struct dp_buf *b, const char *key, const struct dp_summary *s,
                       const char *(*word)(const struct dp_summary_probe *))
{
	struct dp_group groups[64];
	size_t n = dp_summary_group(s, word, groups, 64);
	put_key(b, ",", key);
	dp_put_str(b, "{");
	for (size_t i = 0; i < n; i++) {
		put_key(b, i ? "," : "", groups[i].word);
		dp_put_dec(b, groups[i].n);
	}
	dp_put_str(b, "}");
}

static void put_probe(struct dp_buf *b, const struct dp_summary_probe *p, bool counted)
{
	struct dp_counts c = dp_summary_count(p, 1);
	put_key(b, "{", "name");
	dp_put_json_str(b, p->name);
	if (p->title)
		put_string(b, "title", p->title);
	put_string(b, "spec", p->spec);
	put_number(b, "pid", (uint64_t)p->pid);
	if (p->inner_pid)
		put_number(b, "inner_pid", (uint64_t)p->inner_pid);
	if (p->processes)
		put_number(b, "processes", p->processes);
	put_string(b, "state", !p->tactic ? "refused" : p->retired ? "retired" : "placed");
	put_string(b, "tactic", p->tactic);
	put_string(b, "tag", p->tag);
	put_string(b, "reason", p->reason);
	dp_put_str(b, ",\"addr\":\"");
	dp_put_hex(b, p->addr);
	dp_put_str(b, "\"");
	put_counts(b, &c, counted);
	dp_put_str(b, "}");
}

static void put_processes(struct dp_buf *b, const struct dp_summary *s)
{
	struct dp_process_counts p;
	dp_put_str(b, ",\"processes\":[");
	const char *before = "{"; /* a pid may come again: of a process that executed another program */
	for (size_t i = 0; dp_summary_process(s, &i, &p); before = ",{") {
		put_key(b, before, "pid");
		dp_put_dec(b, (uint64_t)p.pid);
		put_string(b, "comm", p.comm);
		put_number(b, "placed", p.counts.placed);
		put_counts(b, &p.counts, !s->session);
		dp_put_str(b, "}");
	}
	dp_put_str(b, "]");
}

/* How many hits have a snapshot, and how many have none, by reason. */
static void put_snapshots(struct dp_buf *b, const struct dp_summary_snapshots *s)
{
	if (!s)
		return;
	put_key(b, ",", "snapshots");
	put_key(b, "{", "hits");
	dp_put_dec(b, s->taken + s->failed + s->over + s->missed + s->late);
	put_number(b, "taken", s->taken);
	put_number(b, "failed", s->failed);
	put_number(b, "beyond_limits", s->over);
	put_number(b, "while_another", s->missed);
	put_number(b, "in_vain", s->late);
	dp_put_str(b, "}");
}

static void put_pieces(struct dp_buf *b, const struct dp_record_pieces *p)
{
	if (!p)
		return;
	put_key(b, ",", "traces");
	put_key(b, "{", "kept");
	dp_put_dec(b, p->kept);
	put_number(b, "removed", p->removed);
	put_number(b, "removed_events", p->events);
	dp_put_str(b, "}");
}

static void put_waits(struct dp_buf *b, const struct dp_summary_waits *w)
{
	if (!w)
		return;
	put_key(b, ",", "waited");
	put_key(b, "{", "hits");
	dp_put_dec(b, w->hits);
	put_number(b, "in_vain", w->late);
	put_number(b, "ns", w->ns);
	dp_put_str(b, "}");
}

static void put_children(struct dp_buf *b, const struct dp_summary_children *c)
{
	if (!c)
		return;
	if (c->asked)
		put_number(b, "followed", c->followed);
	put_number(b, "children_cleaned", c->cleaned);
	put_key(b, ",", "children_left");
	dp_put_str(b, "[");
	for (size_t i = 0; i < c->nleft; i++) {
		put_key(b, i ? ",{" : "{", "pid");
		dp_put_dec(b, (uint64_t)c->left[i].pid);
		put_string(b, "comm", c->left[i].comm);
		put_string(b, "tag", c->left[i].tag);
		put_string(b, "reason", c->left[i].why);
		dp_put_str(b, "}");
	}
	dp_put_str(b, "]");
}

static void put_programs(struct dp_buf *b, const struct dp_summary_programs *p)
{
	if (!p)
		return;
	put_number(b, "started", p->started);
	put_number(b, "late", p->late);
	put_number(b, "unprobed", p->unprobed);
	if (p->denied)
		put_number(b, "denied", p->denied);
}

static void put_by_calls(struct dp_buf *b, const struct dp_summary *s)
{
	if (!s->by_calls) {
		put_string(b, "memory_by_calls", NULL);
		return;
	}
	put_key(b, ",", "memory_by_calls");
	put_key(b, "{", "why");
	dp_put_json_str(b, s->by_calls);
	if (s->by_calls_ns)
		put_number(b, "ns", s->by_calls_ns);
	else
		put_string(b, "ns", NULL);
	dp_put_str(b, "}");
}

static void put_stops(struct dp_buf *b, const char *key, const struct dp_summary_stops *s)
{
	put_key(b, ",", key);
	put_key(b, "{", "stops");
	dp_put_dec(b, s->stops);
	put_number(b, "given_up", s->vain);
	put_number(b, "held_ns", s->held_ns);
	dp_put_str(b, "}");
}

void dp_summary_json(const struct dp_summary *s, FILE *to)
{
	struct dp_buf b = {0};
	struct dp_counts all = dp_summary_count(s->probe, s->n);
	dp_put_str(&b, "{\"type\":\"summary\",\"version\":1");
	put_number(&b, "asked", s->n);
	put_number(&b, "placed", all.placed);
	put_number(&b, "refused", all.refused);
	put_number(&b, "left_out", all.left_out);
	put_number(&b, "retired", all.retired);
	put_groups(&b, "tactics", s, dp_summary_tactic);
	put_groups(&b, "refusals", s, dp_summary_refusal_tag);
	put_counts(&b, &all, !s->session);
	put_number(&b, "attach_ns", s->attach_ns);
	put_number(&b, "armed_ns", s->armed_ns);
	put_number(&b, "detach_ns", s->detach_ns);
	put_number(&b, "pause_attach_ns", s->pause_attach_ns);
	put_number(&b, "pause_detach_ns", s->pause_detach_ns);
	put_stops(&b, "stops_attach", &s->attach);
	put_stops(&b, "stops_detach", &s->detach);
	put_string(&b, "frozen_attach", s->frozen_attach);
	put_string(&b, "frozen_detach", s->frozen_detach);
	put_by_calls(&b, s);
	put_number(&b, "left_bytes", s->left_bytes);
	put_number(&b, "left_sites", s->left_sites);
	put_string(&b, "left_why", s->left_bytes || s->left_sites ? s->left_why : NULL);
	put_string(&b, "record_dir", s->record_dir);
	put_pieces(&b, s->pieces);
	put_string(&b, "session", s->session);
	put_string(&b, "ended_by", s->ended_by);
	put_snapshots(&b, s->snapshots);
	put_waits(&b, s->waits);
	put_children(&b, s->children);
	put_programs(&b, s->programs);
	put_processes(&b, s);
	dp_put_str(&b, ",\"probes\":[");
	for (size_t i = 0; i < s->n; i++) {
		dp_put_str(&b, i ? "," : "");
		put_probe(&b, &s->probe[i], !s->session);
	}
	dp_put_str(&b, "]}\n");
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}

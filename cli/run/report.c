/* SPDX-License-Identifier: MIT */
/* What was asked, what was placed and how, what was refused and why: before, during and after a run (G7). */
#include "cli/run/snapshots.h"
#include "cli/run/trace.h"
#include "cli/session/expand/patterns.h"
#include "cli/session/session_trap.h"

#include <stdlib.h>
#include <string.h>

#define SAID 10u /* refusals of a pattern's probes that are said one by one */

static void refusal_line(const struct dp_session *s, const char *spec, const struct dp_error *refused)
{
	fprintf(stderr, "dynprobe: refused %s in %d: %s [%s]\n", spec, dp_target_pid(s->target), refused->message,
	        dp_tag_name(refused->tag));
	for (const struct dp_error *e = refused->cause; e; e = e->cause)
		fprintf(stderr, "  because: %s\n", e->message);
}

/* A line each, but a pattern may stand for thousands of probes: of these some, and how many more. */
void dp_report_refusals(const struct dp_run *run)
{
	size_t unsaid = 0;
	for (size_t k = 0; k < run->nsessions; k++)
		for (size_t i = 0, said = 0; i < run->options->nprobes; i++) {
			const struct dp_probe *p = &run->options->probe[i];
			const struct dp_session *s = run->session[k];
			if (!s->place[i].refused || (s->place[i].left_out && !run->options->verbose))
				continue;
			if (p->selected && !run->options->verbose && said++ >= SAID)
				unsaid++;
			else
				refusal_line(s, p->spec.text, s->place[i].refused);
		}
	if (unsaid)
		fprintf(stderr, "dynprobe: refused %zu more of the probes that patterns stand for; -v lists them\n", unsaid);
	dp_patterns_note(run);
	for (size_t k = 0; !run->options->quiet && k < run->nsessions; k++)
		dp_session_trap_note(run->session[k]);
}

static void fill_probe(const struct dp_run *run, const struct dp_session *s, size_t i, struct dp_summary_probe *ret)
{
	const struct dp_place *p = &s->place[i];
	*ret = (struct dp_summary_probe){
	        .name = run->options->probe[i].name,
	        .spec = run->options->probe[i].spec.text,
	        .pid = dp_target_pid(s->target),
	        .tactic = p->placed ? dp_tactic_name(p->plan.tactic) : NULL,
	        .tag = p->refused   ? dp_tag_name(p->refused->tag)
	               : p->retired ? dp_tag_name(DP_TAG_FOREIGN)
	                            : NULL,
	        .reason = p->refused ? p->refused->message : p->retired_why,
	        .retired = p->retired,
	        .left_out = p->left_out,
	        .is_call = run->options->typed[i].call.is,
	        .addr = p->addr,
	        .recorded = p->recorded,
	        .lost = s->loss[i],
	        .lost_unpaired = p->unpaired,
	        .lost_crowded = p->crowded,
	};
	ret->lost.damaged += p->damaged;
	ret->lost.other += p->unshown;
}

static void add_stops(struct dp_summary_stops *to, uint64_t held_ns, unsigned stops, unsigned vain)
{
	to->held_ns += held_ns;
	to->stops += stops;
	to->vain += vain;
}

static void add_session(const struct dp_session *s, struct dp_summary *sum)
{
	if (s->install.pause_ns > sum->pause_attach_ns)
		sum->pause_attach_ns = s->install.pause_ns;
	add_stops(&sum->attach, s->install.held_ns, s->install.stops, s->install.vain);
	add_stops(&sum->detach, s->removal.held_ns, s->removal.stops, s->removal.vain);
	if (s->sink_stats.pause_ns > sum->pause_attach_ns)
		sum->pause_attach_ns = s->sink_stats.pause_ns;
	if (s->removal.pause_ns > sum->pause_detach_ns)
		sum->pause_detach_ns = s->removal.pause_ns;
	if (s->install.why_frozen[0])
		sum->frozen_attach = s->install.why_frozen;
	if (s->removal.why_frozen[0])
		sum->frozen_detach = s->removal.why_frozen;
	if (s->by_calls.why[0]) {
		sum->by_calls = s->by_calls.why;
		sum->by_calls_ns = s->by_calls.for_ns;
	}
	sum->left_bytes += s->removal.left_bytes;
	if (s->removal.left_bytes || s->removal.left_sites)
		sum->left_why = s->removal.why;
}

void dp_report_summary(struct dp_run *run)
{
	struct dp_summary_snapshots shots;
	const size_t each = run->options->nprobes;
	dp_auto_free struct dp_summary_probe *probe = calloc(run->nsessions * each + 1, sizeof(*probe));
	struct dp_summary sum = {
	        .probe = probe,
	        .attach_ns = run->armed_ns ? run->armed_ns - run->start_ns : 0,
	        .armed_ns = run->armed_ns && run->leave_ns ? run->leave_ns - run->armed_ns : 0,
	        .detach_ns = run->clear_ns - run->leave_ns,
	        .record_dir = run->out.record_dir,
	        .session = run->use_lttng ? run->lttng_session : NULL,
	        .snapshots = dp_snapshots_counts(run, &shots) ? &shots : NULL,
	        .ended_by = run->ended_by,
	};
	if (!probe)
		return;
	for (size_t k = 0; k < run->nsessions; k++) {
		add_session(run->session[k], &sum);
		for (size_t i = 0; i < each; i++)
			if (!run->options->probe[i].reserved)
				fill_probe(run, run->session[k], i, &probe[sum.n++]);
	}
	if (run->options->format == DP_FORMAT_JSON)
		dp_summary_json(&sum, run->out.file);
	else
		dp_summary_text(&sum, stderr, run->out.color && run->out.to_stderr);
}

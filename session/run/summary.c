/* SPDX-License-Identifier: MIT */
#include "session/run/summary.h"

#include "session/process/session_full.h"
#include "session/run/past.h"
#include "session/run/snapshots.h"

#include <stdlib.h>
#include <string.h>

/* Why a probe is not there, or NULL; owned by the summary. */
static char *reason_of(const struct dp_place *p)
{
	if (p->refused)
		return dp_error_text(p->refused);
	if (p->retired)
		return p->retired_why ? strdup(p->retired_why) : NULL;
	return p->placed ? NULL : strdup("a signal came before this process was reached");
}

void dp_run_summary_row(const struct dp_run *run, const struct dp_session *s, size_t i, struct dp_summary_probe *ret)
{
	const struct dp_place *p = &s->place[i];
	*ret = (struct dp_summary_probe){
	        .name = run->trace->probe[i].name,
	        .title = run->trace->probe[i].title ? run->trace->probe[i].title : run->trace->probe[i].shown,
	        .spec = run->trace->probe[i].spec.text,
	        .pid = dp_target_pid(s->target),
	        .comm = dp_target_comm(s->target),
	        .inner_pid = dp_target_inner_pid(s->target),
	        .tactic = p->placed ? dp_tactic_name(p->plan.tactic) : NULL,
	        .tag = p->refused   ? dp_tag_name(p->refused->tag)
	               : p->retired ? dp_tag_name(DP_TAG_FOREIGN)
	               : p->placed  ? NULL
	                            : dp_tag_name(DP_TAG_INTERRUPTED),
	        .reason = reason_of(p),
	        .retired = p->retired,
	        .left_out = p->left_out,
	        .is_call = run->trace->typed[i].call.is,
	        .addr = p->addr,
	        .recorded = p->recorded,
	        .lost = s->loss[i],
	        .lost_unpaired = p->unpaired,
	        .lost_crowded = p->crowded,
	};
	ret->lost.damaged += p->damaged;
	ret->lost.other += p->unshown;
}

bool dp_run_is_nowhere(const struct dp_run *run, size_t k, size_t i)
{
	bool found = k > 0 || dp_past_has(run, i);
	for (size_t other = 0; !found && other < run->nsessions; other++)
		found = run->session[other]->place && !run->session[other]->place[i].absent;
	return !found;
}

static bool has_row(const struct dp_run *run, size_t k, size_t i)
{
	return !run->trace->probe[i].reserved && (!run->session[k]->place[i].absent || dp_run_is_nowhere(run, k, i));
}

/* One row for each probe; one for all of a pattern's. */
static size_t fill_missing(const struct dp_run *run, const struct dp_run_missing *m, struct dp_summary_probe *ret)
{
	size_t n = 0;
	unsigned pattern = 0;
	for (size_t i = 0; i < run->trace->nprobes; i++) {
		const struct dp_probe *p = &run->trace->probe[i];
		if (p->reserved || (p->pattern && p->pattern == pattern))
			continue;
		pattern = p->pattern;
		ret[n++] = (struct dp_summary_probe){.name = p->name,
		                                     .title = dp_probe_shown(p),
		                                     .spec = p->spec.text,
		                                     .pid = m->pid,
		                                     .tag = dp_tag_name(m->why->tag),
		                                     .reason = dp_error_text(m->why)};
	}
	return n;
}

static void add_stops(struct dp_summary_stops *to, uint64_t held_ns, unsigned stops, unsigned vain)
{
	to->held_ns += held_ns;
	to->stops += stops;
	to->vain += vain;
}

void dp_run_summary_session(const struct dp_session *s, struct dp_summary *sum)
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
	sum->left_sites += s->removal.left_sites;
	if (s->removal.left_bytes || s->removal.left_sites)
		sum->left_why = s->removal.why;
}

static size_t fill_left(const struct dp_children *c, struct dp_summary_child *ret)
{
	for (size_t i = 0; i < c->nleft; i++)
		ret[i] = (struct dp_summary_child){.pid = c->left[i].pid,
		                                   .comm = c->left[i].comm,
		                                   .tag = dp_tag_name(c->left[i].why->tag),
		                                   .why = c->left[i].why->message};
	return c->nleft;
}

bool dp_run_children(const struct dp_run *run, struct dp_summary_children *ret)
{
	size_t n = 0;
	*ret = (struct dp_summary_children){.asked = run->trace->follow};
	for (size_t i = 0; i < run->nsessions; i++)
		n += run->session[i]->children.nleft;
	n += dp_past_children(run)->nleft;
	struct dp_summary_child *left = calloc(n + 1, sizeof(*left));
	if (!left)
		return false;
	for (size_t i = 0; i < run->nsessions; i++) {
		ret->followed += run->session[i]->followed;
		ret->cleaned += run->session[i]->children.cleaned;
		ret->nleft += fill_left(&run->session[i]->children, &left[ret->nleft]);
	}
	ret->followed += dp_past_followed(run);
	ret->cleaned += dp_past_children(run)->cleaned;
	ret->nleft += fill_left(dp_past_children(run), &left[ret->nleft]);
	ret->left = left;
	return true;
}

bool dp_run_waits(const struct dp_run *run, struct dp_summary_waits *ret)
{
	struct dp_full_counts all = run->full;
	for (size_t i = 0; i < run->nsessions; i++)
		dp_session_full_count(run->session[i], &all);
	*ret = (struct dp_summary_waits){.hits = all.hits, .late = all.late, .ns = all.ns};
	return run->trace->block_ns;
}

bool dp_run_summary(const struct dp_run *run, struct dp_summary *ret)
{
	const size_t each = run->trace->nprobes;
	struct dp_summary_probe *probe = calloc((run->nsessions + run->nmissing) * each + dp_past_nrows(run) + 1, sizeof(*probe));
	*ret = (struct dp_summary){
	        .probe = probe,
	        .attach_ns = run->armed_ns ? run->armed_ns - run->start_ns : 0,
	        .armed_ns = run->armed_ns && run->leave_ns ? run->leave_ns - run->armed_ns : 0,
	        .detach_ns = run->clear_ns - run->leave_ns,
	        .session = run->use_lttng ? run->lttng_session : NULL,
	        .ended_by = run->ended_by,
	};
	if (!probe)
		return false;
	dp_past_sum(run, ret);
	for (size_t k = 0; k < run->nsessions; k++) {
		dp_run_summary_session(run->session[k], ret);
		for (size_t i = 0; i < each; i++)
			if (has_row(run, k, i))
				dp_run_summary_row(run, run->session[k], i, &probe[ret->n++]);
	}
	for (size_t k = 0; k < run->nmissing; k++)
		ret->n += fill_missing(run, &run->missing[k], &probe[ret->n]);
	ret->n += dp_past_rows(run, &probe[ret->n]);
	return true;
}

void dp_run_summary_fini(struct dp_summary *s)
{
	for (size_t i = 0; i < s->n; i++)
		free((char *)(uintptr_t)s->probe[i].reason);
	free((void *)(uintptr_t)s->probe);
}

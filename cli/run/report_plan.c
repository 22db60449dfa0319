/* SPDX-License-Identifier: MIT */
/* The plan: of a dry run, with the costs of an installation; with -v, of what was installed. */
#include "session/process/forecast.h"
#include "session/process/preview.h"
#include "cli/run/trace.h"
#include "output/reports/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WHERE_SIZE   512u
#define EVICTED_MOST 8u /* neighbours of one site; the tactics need two */

struct shown { /* storage behind one struct dp_planned_site */
	char where[WHERE_SIZE];
	char *reason;
	struct dp_planned_bytes evicted[EVICTED_MOST];
	char evicted_where[EVICTED_MOST][WHERE_SIZE];
};

struct view {
	const struct dp_session *s;
	bool json; /* with the names of the symbol table */
};

static void put_where(const struct view *v, uint64_t addr, char *where)
{
	struct dp_image *image = dp_target_image(v->s->target);
	if (v->json)
		dp_image_describe(image, dp_addr_of(addr), where, WHERE_SIZE);
	else
		dp_image_describe_readable(image, dp_addr_of(addr), where, WHERE_SIZE);
}

static void fill_bytes(const struct view *v, const struct dp_plan *p, char *where, struct dp_planned_bytes *ret)
{
	put_where(v, p->site, where);
	*ret = (struct dp_planned_bytes){
	        .addr = p->site,
	        .where = where,
	        .before = p->old_bytes,
	        .after = p->new_bytes,
	        .len = p->len,
	        .changed = p->changed,
	        .stub = p->stub,
	        .springboard = p->springboard,
	        .stub_size = (size_t)(p->stub_end - p->stub),
	};
}

static size_t fill_evicted(const struct view *v, const struct dp_plan *p, struct shown *to)
{
	const struct dp_plan *e;
	size_t n = 0, i = 0;
	for (; v->s->preview && n < EVICTED_MOST && (e = dp_preview_evicted(v->s->preview, p, &i)); n++)
		fill_bytes(v, e, to->evicted_where[n], &to->evicted[n]);
	return n;
}

static void fill_site(const struct dp_trace *t, const struct dp_session *s, size_t i, struct shown *to,
                      struct dp_planned_site *ret)
{
	const struct dp_place *p = &s->place[i];
	const struct view v = {s, t->options->format == DP_FORMAT_JSON};
	*ret = (struct dp_planned_site){
	        .pid = dp_target_pid(s->target),
	        .name = t->run.trace->probe[i].name,
	        .spec = t->run.trace->probe[i].spec.text,
	};
	to->reason = p->refused ? dp_error_text(p->refused) : NULL;
	if (!p->refused && !p->pending)
		fill_bytes(&v, &p->plan, to->where, &ret->patch);
	snprintf(to->where, WHERE_SIZE, "nowhere"); /* a probe of a pattern may have no place */
	if (p->addr)
		put_where(&v, p->addr, to->where);
	ret->patch.addr = p->addr;
	ret->patch.where = to->where;
	if (p->pending) {
		ret->tag = dp_tag_name(DP_TAG_PENDING);
		ret->reason = "waiting for its library";
		return;
	}
	if (p->refused) {
		ret->tag = dp_tag_name(p->refused->tag);
		ret->reason = to->reason ? to->reason : p->refused->message;
		return;
	}
	ret->tactic = dp_tactic_name(p->plan.tactic);
	ret->displaced = p->plan.displaced;
	ret->evicted = to->evicted;
	ret->nevicted = fill_evicted(&v, &p->plan, to);
}

/* ---- totals -------------------------------------------------------------------------------------------------------------- */

struct counts {
	struct dp_plan_count tactic[DP_TACTIC_COUNT + 1], refusal[DP_TAG_COUNT + 1];
};

static void count_places(const struct dp_session *s, struct counts *c, struct dp_plan_total *t)
{
	size_t tactic[DP_TACTIC_COUNT] = {0}, refusal[DP_TAG_COUNT] = {0}, k = 0, r = 0;
	t->asked = s->trace->nprobes;
	for (size_t i = 0; i < t->asked; i++)
		if (s->place[i].refused)
			refusal[s->place[i].refused->tag]++;
		else
			tactic[s->place[i].plan.tactic]++;
	for (int i = 0; i < DP_TACTIC_COUNT; i++) {
		t->placed += tactic[i];
		if (tactic[i])
			c->tactic[k++] = (struct dp_plan_count){dp_tactic_name((enum dp_tactic)i), tactic[i]};
	}
	for (int i = 0; i < DP_TAG_COUNT; i++)
		if (refusal[i])
			c->refusal[r++] = (struct dp_plan_count){dp_tag_name((enum dp_tag)i), refusal[i]};
	t->tactic = c->tactic;
	t->refusal = c->refusal;
}

static void total(const struct dp_trace *trace, const struct dp_session *s)
{
	struct counts c = {0};
	const struct dp_preview *p = s->preview;
	const struct dp_forecast forecast = dp_forecast_of(s, p->plan, p->nplans);
	struct dp_plan_total t = {
	        .pid = dp_target_pid(s->target),
	        .comm = dp_target_comm(s->target),
	        .text_pages = forecast.pages,
	        .install_ns = forecast.install_ns,
	        .removal_ns = forecast.removal_ns,
	        .pause_ns = forecast.pause_ns,
	        .together_ns = forecast.together_ns,
	        .stub_mappings = p->extents,
	        .stub_bytes = p->extent_bytes,
	        .own_mappings = p->own.mappings,
	        .own_bytes = p->own.bytes,
	        .ring_bytes = p->own.rings,
	        .ring_memory = p->own.ring_memory,
	};
	count_places(s, &c, &t);
	for (size_t k = 0; k < p->nneighbours; k++)
		t.evicted += p->neighbour[k].evicted;
	t.hooks = p->nneighbours - t.evicted;
	if (trace->run.trace->sink == DP_SINK_LTTNG)
		t.note = "these are the stubs of the ring sink: those of LTTng differ in size, its sink is loaded, too, and "
		         "rings are small";
	else if (dp_target_filter_assumed(s->target))
		t.note = "the process is under a seccomp filter, which only an attach reads: this is the plan if it lets dynprobe's "
		         "system calls through";
	if (trace->options->format == DP_FORMAT_JSON)
		dp_plan_total_json(&t, stdout);
	else
		dp_plan_total_text(&t, stdout);
}

/* One row for each probe; one for all of a pattern's. */
static void put_missing(const struct dp_trace *t, const struct dp_run_missing *m, FILE *to)
{
	dp_auto_free char *reason = dp_error_text(m->why);
	unsigned pattern = 0;
	for (size_t i = 0; i < t->run.trace->nprobes; i++) {
		const struct dp_probe *p = &t->run.trace->probe[i];
		const struct dp_planned_site site = {.pid = m->pid,
		                                     .name = p->name,
		                                     .spec = p->spec.text,
		                                     .patch.where = "nowhere",
		                                     .tag = dp_tag_name(m->why->tag),
		                                     .reason = reason ? reason : m->why->message};
		if (!p->reserved && (!p->pattern || p->pattern != pattern))
			dp_plan_json(&site, to);
		pattern = p->pattern;
	}
}

void dp_report_plan(const struct dp_trace *t, FILE *to)
{
	const bool json = t->run.trace->dry_run && t->options->format == DP_FORMAT_JSON;
	for (size_t k = 0; k < t->run.nsessions; k++) {
		const struct dp_session *s = t->run.session[k];
		for (size_t i = 0; i < t->run.trace->nprobes; i++) {
			struct shown storage;
			struct dp_planned_site site;
			fill_site(t, s, i, &storage, &site);
			if (json)
				dp_plan_json(&site, to);
			else
				dp_plan_text(&site, to);
			free(storage.reason);
			if (ferror(to)) /* errno has the reason */
				return;
		}
		if (s->preview)
			total(t, s);
	}
	for (size_t k = 0; json && k < t->run.nmissing; k++) /* as text they were said already */
		put_missing(t, &t->run.missing[k], to);
}

struct dp_error *dp_report_flushed(void)
{
	if ((!fflush(stdout) && !ferror(stdout)) || errno == EPIPE)
		return NULL;
	return dp_error_sys(DP_TAG_OUTPUT, "writing the plan");
}

/* SPDX-License-Identifier: MIT */
#include "session/run/past.h"

#include "session/process/session_full.h"
#include "session/run/rows.h"
#include "session/run/snapshots.h"
#include "session/run/summary.h"

#include <stdlib.h>
#include <string.h>

struct probe { /* the same probe in all these processes */
	struct dp_summary_probe placed, refused;
	char *retired_why;    /* of the last one */
	struct dp_error *why; /* of the last refusal */
	struct dp_error *absent; /* of the last process that had no place for it, although others may have */
};

struct dp_past {
	size_t nprobes;
	struct probe *probe;
	struct dp_summary sum;
	struct dp_children children; /* of all that have ended */
	unsigned followed;
};

static struct dp_past *past(struct dp_run *run)
{
	if (run->past)
		return run->past;
	struct dp_past *p = calloc(1, sizeof(*p));
	if (p && !(p->probe = calloc(run->trace->nprobes + 1, sizeof(*p->probe)))) {
		free(p);
		return NULL;
	}
	if (p)
		p->nprobes = run->trace->nprobes;
	return run->past = p;
}

static void add_loss(struct dp_loss *to, const struct dp_loss *from)
{
	to->full += from->full;
	to->no_slot += from->no_slot;
	to->forked += from->forked;
	to->abandoned += from->abandoned;
	to->damaged += from->damaged;
	to->other += from->other;
	to->nested += from->nested;
	to->unprimed += from->unprimed;
	to->no_stack += from->no_stack;
	to->overwritten += from->overwritten;
	to->unreadable += from->unreadable;
	to->unwanted += from->unwanted;
}

static void add_row(struct dp_summary_probe *to, const struct dp_summary_probe *row)
{
	const struct dp_summary_probe before = *to;
	*to = *row;
	to->pid = 0;
	to->inner_pid = 0;
	to->processes = before.processes + 1;
	to->retired |= before.retired;
	to->left_out &= before.left_out || !before.processes;
	to->recorded += before.recorded;
	to->lost_unpaired += before.lost_unpaired;
	to->lost_crowded += before.lost_crowded;
	add_loss(&to->lost, &before.lost);
}

static void add_probe(struct dp_past *p, const struct dp_run *run, struct dp_session *s, size_t i)
{
	struct dp_summary_probe row;
	struct probe *to = &p->probe[i];
	dp_run_summary_row(run, s, i, &row);
	if (s->place[i].refused) {
		dp_error_destroy(to->why);
		to->why = dp_take(s->place[i].refused, NULL);
	}
	if (s->place[i].retired_why) {
		free(to->retired_why);
		to->retired_why = dp_take(s->place[i].retired_why, NULL);
	}
	free((void *)(uintptr_t)row.reason);
	row.reason = NULL;
	row.comm = NULL;
	add_row(row.tactic ? &to->placed : &to->refused, &row);
}

static void note_absent(struct probe *to, struct dp_place *place)
{
	dp_error_destroy(to->absent);
	to->absent = dp_take(place->refused, NULL);
}

/* No process is left, and none had it. */
static bool was_nowhere(const struct dp_run *run, size_t i)
{
	const struct probe *p = &run->past->probe[i];
	return !run->nsessions && p->absent && !p->placed.processes && !p->refused.processes;
}

/* Takes the entries. */
static void add_children(struct dp_children *to, struct dp_children *from)
{
	struct dp_uncleaned *grown = realloc(to->left, (to->nleft + from->nleft + 1) * sizeof(*grown));
	to->cleaned += from->cleaned;
	if (!grown)
		return;
	to->left = grown;
	for (size_t i = 0; i < from->nleft; i++)
		to->left[to->nleft++] = from->left[i];
	from->nleft = 0;
}

void dp_past_take(struct dp_run *run, size_t k)
{
	struct dp_session *s = run->session[k];
	struct dp_past *p = past(run);
	dp_error_destroy(dp_session_remove(s)); /* the process has gone, or executes another program */
	dp_session_sweep(s, dp_run_must_leave, run);
	if (s->loss && !dp_run_has_all(run)) /* its fork children hit until they were cleaned */
		dp_run_note_losses_of(run, s);
	dp_rows_keep(run, k);
	dp_snapshots_part(run, s);
	dp_session_full_count(s, &run->full);
	for (size_t i = 0; p && s->place && i < p->nprobes; i++)
		if (s->place[i].absent)
			note_absent(&p->probe[i], &s->place[i]);
		else if (!run->trace->probe[i].reserved)
			add_probe(p, run, s, i);
	if (p) {
		dp_run_summary_session(s, &p->sum);
		p->followed += s->followed;
		add_children(&p->children, &s->children);
		p->sum.by_calls = p->sum.frozen_attach = p->sum.frozen_detach = p->sum.left_why =
		        NULL; /* belong to the session */
	}
	if (run->trace->calls->forget)
		run->trace->calls->forget(dp_target_image(s->target), run->trace->calls->run_data);
	dp_session_destroy(s);
	memmove(&run->session[k], &run->session[k + 1], (--run->nsessions - k) * sizeof(*run->session));
}

void dp_past_refuse(struct dp_run *run, struct dp_error *why)
{
	struct dp_past *p = past(run);
	for (size_t i = 0; p && i < p->nprobes; i++) {
		const struct dp_probe *probe = &run->trace->probe[i];
		const struct dp_summary_probe row = {.name = probe->name, .spec = probe->spec.text, .tag = dp_tag_name(why->tag)};
		if (probe->reserved)
			continue;
		add_row(&p->probe[i].refused, &row);
		dp_error_destroy(p->probe[i].why);
		p->probe[i].why = dp_error(why->tag, "%s", why->message);
	}
	dp_error_destroy(why);
}

size_t dp_past_nrows(const struct dp_run *run)
{
	return run->past ? 2 * run->past->nprobes : 0;
}

size_t dp_past_rows(const struct dp_run *run, struct dp_summary_probe *ret)
{
	const struct dp_past *p = run->past;
	size_t n = 0;
	for (size_t i = 0; p && i < p->nprobes; i++) {
		const struct probe *from = &p->probe[i];
		if (from->placed.processes) {
			ret[n] = from->placed;
			ret[n++].reason = from->placed.retired && from->retired_why ? strdup(from->retired_why) : NULL;
		}
		if (from->refused.processes) {
			ret[n] = from->refused;
			ret[n].tag = from->why ? dp_tag_name(from->why->tag) : ret[n].tag;
			ret[n++].reason = from->why ? dp_error_text(from->why) : NULL;
		}
		if (was_nowhere(run, i))
			ret[n++] = (struct dp_summary_probe){.name = run->trace->probe[i].name,
			                                     .spec = run->trace->probe[i].spec.text,
			                                     .tag = dp_tag_name(from->absent->tag),
			                                     .reason = dp_error_text(from->absent)};
	}
	return n;
}

const struct dp_children *dp_past_children(const struct dp_run *run)
{
	static const struct dp_children none;
	return run->past ? &run->past->children : &none;
}

unsigned dp_past_followed(const struct dp_run *run)
{
	return run->past ? run->past->followed : 0;
}

void dp_past_sum(const struct dp_run *run, struct dp_summary *sum)
{
	const struct dp_past *p = run->past;
	if (!p)
		return;
	sum->pause_attach_ns = p->sum.pause_attach_ns;
	sum->pause_detach_ns = p->sum.pause_detach_ns;
	sum->attach = p->sum.attach;
	sum->detach = p->sum.detach;
}

bool dp_past_has(const struct dp_run *run, size_t i)
{
	return run->past && (run->past->probe[i].placed.processes || run->past->probe[i].refused.processes);
}

uint64_t dp_past_lost(const struct dp_run *run)
{
	uint64_t sum = 0;
	for (size_t i = 0; run->past && i < run->past->nprobes; i++)
		sum += dp_loss_sum(&run->past->probe[i].placed.lost);
	return sum;
}

bool dp_past_refused(const struct dp_run *run)
{
	for (size_t i = 0; run->past && i < run->past->nprobes; i++)
		if ((run->past->probe[i].refused.processes && !run->past->probe[i].refused.left_out) || was_nowhere(run, i))
			return true;
	return false;
}

struct dp_past *dp_past_destroy(struct dp_past *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < p->nprobes; i++) {
		free(p->probe[i].retired_why);
		dp_error_destroy(p->probe[i].why);
		dp_error_destroy(p->probe[i].absent);
	}
	dp_children_fini(&p->children);
	free(p->probe);
	free(p);
	return NULL;
}

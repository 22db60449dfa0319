/* SPDX-License-Identifier: MIT */
#include "session/process/pending.h"

#include "injector/loads.h"
#include "session/process/session_full.h"
#include "session/process/session_scope.h"

#include <stdlib.h>
#include <string.h>

#define NOTES 8u /* of one probe; some programs load and unload all the time */

struct dp_pending {
	struct dp_plan hook;
	bool hooked;
	struct dp_error *unhooked;
	bool news;                 /* a library was loaded since the last round */
	uint32_t late;             /* dp_loads_late(), as last reported */
	struct dp_session **later; /* sessions installed since, oldest first */
	size_t nlater;
	struct dp_session *seen;    /* the process as dp_pending_lost() found it in this round, or NULL */
	unsigned *nnotes;           /* for each probe, the number of its notes */
	struct dp_loss *closed;     /* losses of closed sessions */
	struct dp_full_counts closed_full;
	struct dp_target *draining; /* the one of `later` being drained, or NULL */
};

static void log_waiting(const struct dp_session *s)
{
	struct dp_buf names;
	size_t n = 0;
	dp_buf_init(&names);
	for (size_t i = 0; i < s->trace->nprobes; i++)
		if (s->place[i].pending && !s->trace->probe[i].reserved) {
			dp_buf_printf(&names, " %s", s->trace->probe[i].spec.text);
			n++;
		}
	if (n)
		dp_trace_log(s->trace, DP_LOG_WARNING, "%zu probe%s pending in %d:%s", n, n == 1 ? " is" : "s are",
		             dp_target_pid(s->target), dp_buf_str(&names));
	dp_buf_fini(&names);
}

/* --follow: a program that cannot be watched is one that has no place of these probes; others may have one. */
static void wait_for_none(struct dp_session *s, struct dp_error *why)
{
	for (size_t i = 0; i < s->trace->nprobes; i++) {
		if (!s->place[i].pending)
			continue;
		s->place[i].pending = false;
		s->place[i].absent = true;
		s->place[i].refused = dp_error(why->tag, "%s", why->message);
	}
	dp_error_destroy(why);
}

struct dp_error *dp_pending_begin(struct dp_session *s)
{
	struct dp_error *unwatched = dp_loads_check(s->target);
	if (unwatched && s->partial) {
		wait_for_none(s, unwatched);
		return NULL;
	}
	if (unwatched)
		return unwatched;
	s->pending = calloc(1, sizeof(*s->pending));
	if (!s->pending)
		return dp_error_nomem();
	s->pending->closed = calloc(s->trace->nprobes + 1, sizeof(*s->pending->closed));
	s->pending->nnotes = calloc(s->trace->nprobes + 1, sizeof(*s->pending->nnotes));
	if (!s->pending->closed || !s->pending->nnotes)
		return dp_error_nomem();
	log_waiting(s);
	return NULL;
}

struct dp_pending *dp_pending_destroy(struct dp_pending *p)
{
	if (!p)
		return NULL;
	for (size_t k = 0; k < p->nlater; k++)
		dp_session_destroy(p->later[k]);
	dp_session_destroy(p->seen);
	free(p->later);
	free(p->closed);
	free(p->nnotes);
	dp_error_destroy(p->unhooked);
	free(p);
	return NULL;
}

/* ---- the hook --------------------------------------------------------------------------------------------------------- */

/* The loader calls this function for debuggers: before it maps a library, after that but before its code runs, and likewise
 * around unmapping. */
static struct dp_error *plan_hook(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view)
{
	struct dp_site site;
	const struct dp_text *text;
	DP_TRY(dp_session_find_function(s, view, "ld-linux-x86-64.so.2!_dl_debug_state", &site, &text));
	const struct dp_request request = {
	        .site = site.addr.v,
	        .probe = DP_NO_PROBE,
	        .text = text,
	        .hook = dp_loads_hook(s->target),
	};
	return dp_planner_add(planner, &request, &s->pending->hook);
}

static struct dp_error *cannot_wait(struct dp_error *cause)
{
	return dp_error_wrap(cause, "--pending: cannot watch the dynamic loader");
}

struct dp_error *dp_pending_plan(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view)
{
	if (!s->pending)
		return NULL;
	struct dp_error *err = plan_hook(s, planner, view);
	s->pending->hooked = !err;
	return err ? cannot_wait(err) : NULL;
}

bool dp_pending_result(struct dp_session *s, const struct dp_plan *plan, struct dp_error *refused)
{
	if (!s->pending || !s->pending->hooked || plan->probe != DP_NO_PROBE || plan->site != s->pending->hook.site)
		return false;
	s->pending->unhooked = refused;
	return true;
}

/* The library was there when the probe was resolved, and may have been unloaded before its text was changed. */
static bool may_be_gone(const struct dp_session *of, size_t i)
{
	const struct dp_place *place = &of->place[i];
	return place->refused && (place->refused->tag == DP_TAG_FOREIGN || place->refused->tag == DP_TAG_CHANGED) &&
	       !dp_image_never_unloaded(dp_target_image(of->target), dp_addr_of(place->addr));
}

static void wait_instead(struct dp_session *s, size_t i)
{
	if (!may_be_gone(s, i))
		return;
	s->place[i].refused = dp_error_destroy(s->place[i].refused);
	s->place[i].pending = true;
}

struct dp_error *dp_pending_armed(struct dp_session *s)
{
	struct dp_pending *p = s->pending;
	if (!p)
		return NULL;
	if (p->unhooked)
		return cannot_wait(dp_take(p->unhooked, NULL));
	for (size_t i = 0; i < s->trace->nprobes; i++)
		wait_instead(s, i);
	dp_loads_serve(s->target, true);
	p->news = true; /* a library may have been loaded since the image was read */
	return NULL;
}

/* ---- what is installed later ------------------------------------------------------------------------------------------ */

static bool add_later(struct dp_pending *p, struct dp_session *later)
{
	struct dp_session **grown = realloc(p->later, (p->nlater + 1) * sizeof(struct dp_session *));
	if (!grown)
		return false;
	p->later = grown;
	p->later[p->nlater++] = later;
	return true;
}

static void add_loss(struct dp_loss *sum, const struct dp_loss *l)
{
	sum->full += l->full;
	sum->no_slot += l->no_slot;
	sum->forked += l->forked;
	sum->abandoned += l->abandoned;
	sum->damaged += l->damaged;
	sum->other += l->other;
	sum->nested += l->nested;
	sum->unprimed += l->unprimed;
	sum->no_stack += l->no_stack;
	sum->overwritten += l->overwritten;
	sum->unreadable += l->unreadable;
	sum->unwanted += l->unwanted;
}

void dp_pending_loss(const struct dp_session *s, unsigned probe, struct dp_loss *sum)
{
	struct dp_loss l;
	if (!s->pending)
		return;
	add_loss(sum, &s->pending->closed[probe]);
	for (size_t k = 0; k < s->pending->nlater; k++) {
		dp_target_loss(s->pending->later[k]->target, probe, &l);
		add_loss(sum, &l);
	}
}

void dp_pending_full(const struct dp_session *s, struct dp_full_counts *sum)
{
	for (size_t k = 0; s->pending && k < s->pending->nlater; k++)
		dp_session_full_count(s->pending->later[k], sum);
	if (!s->pending)
		return;
	sum->hits += s->pending->closed_full.hits;
	sum->late += s->pending->closed_full.late;
	sum->ns += s->pending->closed_full.ns;
}

struct dp_target *dp_pending_draining(const struct dp_session *s)
{
	return s->pending && s->pending->draining ? s->pending->draining : s->target;
}

static void ignore_retired(size_t plan, const char *why, void *data)
{
	(void)plan;
	(void)why;
	(void)data;
}

static void drain_later(struct dp_pending *p, struct dp_session *later, bool last, dp_pending_drain_fn drain, void *data)
{
	p->draining = later->target;
	drain(later->target, last, data);
	p->draining = NULL;
}

void dp_pending_drain(struct dp_session *s, bool last, dp_pending_drain_fn drain, void *data)
{
	for (size_t k = 0; s->pending && k < s->pending->nlater; k++) {
		if (s->survived) /* their targets must learn that the program has ended: its rings are free for its children */
			dp_target_watch(s->pending->later[k]->target, ignore_retired, NULL);
		drain_later(s->pending, s->pending->later[k], last, drain, data);
	}
}

/* Closes a session whose probes are all gone, because their text was unmapped. Drains its rings first. */
static void close_later(struct dp_session *s, size_t k, dp_pending_drain_fn drain, void *data)
{
	struct dp_pending *p = s->pending;
	struct dp_session *later = p->later[k];
	struct dp_loss l;
	dp_error_destroy(dp_target_remove(later->target, &later->removal));
	dp_session_note_removal(s, &later->removal);
	drain_later(p, later, true, drain, data);
	for (unsigned i = 0; i < s->trace->nprobes; i++) {
		dp_target_loss(later->target, i, &l);
		add_loss(&p->closed[i], &l);
	}
	dp_session_full_count(later, &p->closed_full);
	dp_session_destroy(later);
	memmove(&p->later[k], &p->later[k + 1], (--p->nlater - k) * sizeof(struct dp_session *));
}

static bool has_installed(const struct dp_session *later)
{
	for (size_t i = 0; i < later->trace->nprobes; i++)
		if (later->place[i].placed && !later->place[i].retired)
			return true;
	return false;
}

/* Fork children that are followed may still have the library, and its probes. */
static void close_empty(struct dp_session *s, dp_pending_drain_fn drain, void *data)
{
	for (size_t k = s->pending->nlater; k-- > 0;)
		if (!has_installed(s->pending->later[k]) && !dp_target_followed(s->pending->later[k]->target))
			close_later(s, k, drain, data);
}

/* ---- what was unloaded ------------------------------------------------------------------------------------------------ */

struct inspection {
	struct dp_session *s, *of; /* `of`: s itself, or a later session */
	const struct dp_image *now;
	dp_pending_note_fn note;
	void *data;
	uint32_t late; /* dp_loads_late() when it began */
};

static void note(const struct inspection *l, size_t i, const char *what, const char *why)
{
	char text[768];
	const bool verbose = dp_trace_logs(l->s->trace, DP_LOG_DEBUG);
	unsigned *nnotes = &l->s->pending->nnotes[i];
	if (*nnotes > NOTES && !verbose)
		return;
	snprintf(text, sizeof(text), "probe %s in %d %s%s%s", dp_probe_shown(&l->s->trace->probe[i]), dp_target_pid(l->s->target), what, why,
	         ++*nnotes > NOTES && !verbose ? "; further notes on it are left out" : "");
	l->note(text, l->data);
}

/* The mapping is gone; or the file's own code is back, because the library was unloaded and mapped at the same address again. */
static bool unloaded(const struct inspection *l, size_t plan)
{
	const size_t i = l->of->planned[plan];
	return !dp_loads_still_there(l->of->target, l->now, l->of->place[i].addr) || dp_loads_fresh(l->of->target, plan);
}

static void on_retired(size_t plan, const char *why, void *data)
{
	const struct inspection *l = data;
	const size_t i = l->of->planned[plan];
	if (i == SIZE_MAX)
		return;
	l->of->place[i].retired = true;
	if (unloaded(l, plan)) {
		l->s->place[i].pending = true;
		note(l, i, "is pending again: its library was unloaded", "");
		return;
	}
	l->s->place[i].retired = true;
	free(l->s->place[i].retired_why);
	l->s->place[i].retired_why = strdup(why);
	note(l, i, "retired: ", why);
}

/* False if the target has ended. */
static bool watch_all(struct inspection *l)
{
	for (size_t k = 0; k <= l->s->pending->nlater; k++) {
		l->of = k ? l->s->pending->later[k - 1] : l->s;
		if (dp_target_watch(l->of->target, on_retired, l) != DP_WATCH_OK)
			return false;
	}
	return true;
}

/* ---- what was loaded -------------------------------------------------------------------------------------------------- */

/* Copies the result of probe i from a later session to the first one. */
static void copy_place(const struct inspection *l, size_t i)
{
	struct dp_place *to = &l->s->place[i], *from = &l->of->place[i];
	if (from->pending || !to->pending)
		return;
	/* A loading thread resumed before the inspection, and may have unloaded the library again. */
	if (from->refused && dp_loads_late(l->s->target) != l->late)
		return;
	to->refused = dp_error_destroy(to->refused);
	if (may_be_gone(l->of, i)) {
		to->refused = to->placed ? NULL : dp_take(from->refused, NULL);
		return;
	}
	to->pending = false;
	to->addr = from->addr;
	if (from->refused) {
		to->refused = dp_take(from->refused, NULL);
		to->retired = to->placed; /* by an earlier session */
		note(l, i, "was refused: ", to->refused->message);
		return;
	}
	to->plan = from->plan;
	to->placed = from->placed;
	to->retired = false;
	note(l, i, "is armed", "");
}

static bool found_any(const struct dp_session *later)
{
	for (size_t i = 0; i < later->trace->nprobes; i++)
		if (!later->place[i].pending)
			return true;
	return false;
}

/* Takes ownership of `later`. Probes that could not be installed wait for the next load. */
static void arm(struct inspection *l, struct dp_session *later)
{
	l->of = later;
	struct dp_error *err = dp_session_install(later);
	if (err) {
		char text[512];
		snprintf(text, sizeof(text), "pending probes in %d were not placed: %s [%s]", dp_target_pid(l->s->target),
		         err->message, dp_tag_name(err->tag));
		l->note(text, l->data);
		dp_error_destroy(err);
		dp_session_destroy(later);
		return;
	}
	dp_session_note_install(l->s, &later->install);
	for (size_t i = 0; i < l->s->trace->nprobes; i++)
		copy_place(l, i);
	if (!has_installed(later) || !add_later(l->s->pending, later))
		dp_session_destroy(later);
}

static void note_late(struct dp_session *s, dp_pending_note_fn note_fn, void *data)
{
	const uint32_t late = dp_loads_late(s->target);
	char text[256];
	if (late == s->pending->late)
		return;
	s->pending->late = late;
	snprintf(text, sizeof(text),
	         "a thread of %d that loaded a library resumed before dynprobe had inspected it: hits until now are missed",
	         dp_target_pid(s->target));
	note_fn(text, data);
}

void dp_pending_round(struct dp_session *s, const struct dp_pending_calls *calls)
{
	struct dp_pending *p = s->pending;
	struct dp_session *later = NULL;
	if (p)
		p->seen = dp_session_destroy(p->seen);
	if (!p || s->ended || s->end != DP_WATCH_OK || !(dp_loads_wait(s->target, 0) || p->news))
		return;
	dp_loads_hurry(s->target);
	p->news = false;
	note_late(s, calls->note, calls->data);
	struct dp_error *err = dp_session_beside(s, &later);
	if (!err) {
		struct inspection l = {
		        .s = s, .now = dp_target_image(later->target), .note = calls->note, .data = calls->data, .late = p->late};
		if (watch_all(&l)) {
			dp_pending_places(s->trace, dp_target_image(later->target), dp_loads_late(s->target) == p->late);
			err = dp_session_resolve_beside(later, s);
		}
		if (!err && later->place)
			dp_session_scope_late(later, calls->known, calls->data);
		if (!err && later->place && found_any(later))
			arm(&l, dp_take(later, NULL));
	}
	dp_loads_answer(s->target);
	dp_error_destroy(err); /* the target ended, or no memory: the next round reports it */
	dp_session_destroy(later);
	close_empty(s, calls->drain, calls->data);
}

struct dp_session *dp_pending_later(const struct dp_session *s, size_t k)
{
	return s->pending && k < s->pending->nlater ? s->pending->later[k] : NULL;
}

/* What was read for one of many probes that are gone tells that of the others, too; it may be too old to tell that one is there.
 */
bool dp_pending_lost(struct dp_session *s, size_t plan)
{
	struct dp_pending *p = s->pending;
	struct dp_place *place = &s->place[s->planned[plan]];
	const bool known = p && p->seen;
	if (!p)
		return false;
	if (!known)
		dp_error_destroy(dp_session_beside(s, &p->seen));
	if (p->seen && unloaded(&(struct inspection){.s = s, .of = s, .now = dp_target_image(p->seen->target)}, plan))
		return place->pending = p->news = true;
	p->seen = dp_session_destroy(p->seen);
	return known ? dp_pending_lost(s, plan) : place->pending;
}

int dp_pending_rest(struct dp_session *const *session, size_t n, int ms)
{
	const int each = n == 1 ? ms : ms > 2 ? 2 : ms;
	bool waited = false;
	for (size_t k = 0; k < n; k++) {
		struct dp_session *s = session[k];
		if (!s->pending || s->ended || s->end != DP_WATCH_OK)
			continue;
		s->pending->news |= dp_loads_wait(s->target, waited ? 0 : each);
		waited = true;
	}
	return waited ? 0 : ms;
}

/* ---- the end ---------------------------------------------------------------------------------------------------------- */

static void note_never(struct dp_session *s)
{
	for (size_t i = 0; i < s->trace->nprobes; i++)
		if (s->place[i].pending && !s->place[i].placed && !s->place[i].refused && !s->trace->probe[i].reserved) {
			s->place[i].refused = dp_error(DP_TAG_PENDING, "no library with it was loaded during the run");
			s->place[i].absent = s->partial || s->trace->programs.n;
		}
}

struct dp_error *dp_pending_remove(struct dp_session *s)
{
	struct dp_error *first = NULL;
	if (!s->pending)
		return NULL;
	dp_loads_serve(s->target, false);
	for (size_t k = s->pending->nlater; k-- > 0;) {
		struct dp_session *later = s->pending->later[k];
		struct dp_error *err = dp_target_remove(later->target, &later->removal);
		dp_session_note_removal(s, &later->removal);
		if (first)
			dp_error_destroy(err);
		else
			first = err;
	}
	note_never(s);
	return first;
}

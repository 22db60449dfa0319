/* SPDX-License-Identifier: MIT */
/*
 * Runs callbacks: in order of registration, from the innermost object outwards, each with a deadline. An error in one is logged
 * and counted for its module; the walk continues with the next callback.
 */
#include "pmodules/host/host_state.h"

#include <string.h>
#include <time.h>

static __thread struct pmodule *running;

struct dp_host *dp_host_current(void)
{
	return running ? running->host : NULL;
}

struct pmodule *dp_module_current(void)
{
	return running;
}

uint64_t dp_host_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- time --------------------------------------------------------------------------------------------------------------- */

/* Does the process wait for the running callback? Not with a copy or a core. */
bool dp_host_is_held(const struct dp_host *h)
{
	return h->phase == DP_PHASE_HELD && !h->options.nobody_waits && strcmp(h->snapshot->mode, "fork") &&
	       strcmp(h->snapshot->mode, "core");
}

static uint64_t left(uint64_t budget, uint64_t used)
{
	return used < budget ? budget - used : 0;
}

uint64_t dp_host_budget(const struct dp_host *h)
{
	return h->options.budget_ns ? h->options.budget_ns : DP_BUDGET_HELD_NS;
}

static uint64_t time_left(const struct pmodule *m)
{
	const struct dp_host *h = m->host;
	const uint64_t budget = dp_host_budget(h);
	if (!dp_host_is_held(h))
		return left(budget * DP_BUDGET_LATE, h->snapshot ? m->late_ns : 0);
	const uint64_t own = left(budget, m->held_ns);
	const uint64_t all = left(budget > DP_BUDGET_TOTAL_NS ? budget : DP_BUDGET_TOTAL_NS, h->held_ns);
	return own < all ? own : all;
}

static struct dp_entry enter(struct pmodule *m, uint64_t now)
{
	const struct dp_entry entry = {running, now, m->deadline_ns};
	running = m;
	m->host->entered++;
	m->deadline_ns = entry.begin + time_left(m);
	/* A nested call of the same module keeps the outer deadline: the outer call's time is not counted yet. */
	if (entry.deadline && entry.deadline < m->deadline_ns)
		m->deadline_ns = entry.deadline;
	return entry;
}

struct dp_entry dp_module_enter(struct pmodule *m)
{
	return enter(m, dp_host_now());
}

uint64_t dp_module_leave(struct pmodule *m, const struct dp_entry *entry)
{
	struct dp_host *h = m->host;
	const uint64_t now = dp_host_now(), took = now - entry->begin;
	running = entry->before;
	m->deadline_ns = entry->deadline;
	if (!entry->deadline)
		*(dp_host_is_held(h) ? &m->held_ns : &m->late_ns) += took;
	if (!--h->entered) {
		h->held_ns += dp_host_is_held(h) ? took : 0;
		dp_arena_fini(&h->scratch);
	}
	return now;
}

bool dp_module_expired(const struct pmodule *m)
{
	return m->deadline_ns && dp_host_now() >= m->deadline_ns;
}

/* ---- errors ------------------------------------------------------------------------------------------------------------- */

static void count(struct pmodule *m, const char *what, int64_t n)
{
	char key[128];
	if (!m->host->snapshot)
		return;
	snprintf(key, sizeof(key), "pmodule.%s.%s", m->id ? m->id : "", what);
	dp_snapshot_adds(m->host->snapshot, DP_ADDED_ATTRIBUTE, key, m->id);
	dp_snapshot_set_int(m->host->snapshot, key, n);
}

static void classify(const struct pmodule *m, const char *word)
{
	if (!m->host->snapshot)
		return;
	dp_snapshot_adds(m->host->snapshot, DP_ADDED_CLASSIFIER, word, m->id);
	dp_snapshot_classify(m->host->snapshot, word);
}

void dp_module_error(struct pmodule *m, struct dp_error *err)
{
	dp_host_log(m->host, DP_LOG_ERROR, m, "%s", err->message);
	dp_error_destroy(err);
	m->errors++;
	count(m, "errors", m->errors);
	classify(m, "pmodule-error");
}

/* An error may repeat for thousands of variables: logs the first one; end_errors() logs the number. */
static void callback_error(struct dp_callback *cb, struct dp_error *err)
{
	if (!cb->errors++) {
		dp_module_error(cb->module, err);
		return;
	}
	cb->module->errors++;
	dp_error_destroy(err);
}

static void end_errors(struct dp_host *h)
{
	static const char *const event_name[DP_EVENTS] = {"preattach", "attach", "variable", "frame", "thread", "postattach"};
	for (unsigned event = 0; event < DP_EVENTS; event++)
		for (size_t i = 0; i < h->callbacks[event].n; i++) {
			struct dp_callback *cb = &h->callbacks[event].at[i];
			if (cb->errors > 1)
				dp_host_log(h, DP_LOG_ERROR, cb->module,
				            "a %s callback failed %u times; the first error is above", event_name[event],
				            cb->errors);
			if (cb->errors)
				count(cb->module, "errors", cb->module->errors);
			cb->errors = 0;
		}
}

static void cut_off(struct pmodule *m)
{
	struct dp_host *h = m->host;
	if (m->is_timed_out)
		return;
	m->is_off = m->is_timed_out = true;
	dp_host_log(
	        h, DP_LOG_ERROR, m,
	        "stopped: its time is up (%.1f ms while the process was held, %.1f ms otherwise); its results so far are kept",
	        (double)m->held_ns / 1e6, (double)m->late_ns / 1e6);
	count(m, "timeout", 1);
	classify(m, "pmodule-timeout");
}

/* ---- calls -------------------------------------------------------------------------------------------------------------- */

static void call(struct dp_callback *cb, void *object, struct dp_value *value)
{
	struct pmodule *m = cb->module;
	if (m->is_off || m->is_broken)
		return;
	struct dp_host *h = m->host;
	const struct dp_entry entry = enter(m, h->entered || !h->last_ns ? dp_host_now() : h->last_ns);
	const uint64_t deadline = m->deadline_ns;
	const bool none_left = deadline <= entry.begin;
	struct dp_error *err = none_left ? NULL : m->language->call(m, cb, object, value);
	h->last_ns = dp_module_leave(m, &entry);
	const bool expired = none_left || h->last_ns >= deadline;
	if (expired) {
		dp_error_destroy(err);
		cut_off(m);
	} else if (err) {
		callback_error(cb, err);
	}
}

static void fire(struct dp_host *h, enum dp_module_event event, void *object)
{
	struct dp_callbacks *c = &h->callbacks[event];
	for (size_t i = 0; i < c->n; i++)
		call(&c->at[i], object, NULL);
}

void dp_host_fire_variable(struct dp_host *h, struct dp_snap_variable *v, struct dp_value *value, bool deferred)
{
	struct dp_callbacks *c = &h->callbacks[DP_EVENT_VARIABLE];
	for (size_t i = 0; i < c->n; i++) {
		if (c->at[i].module->is_deferred != deferred || (c->at[i].match && !dp_match_variable(c->at[i].match, v)))
			continue;
		if (!value && h->world && h->options.value_of)
			value = h->options.value_of(h->world, v);
		call(&c->at[i], v, value);
	}
}

/* Members and elements come after their owner, unless a callback hid them. The extraction's limits bound the depth. */
static void variables(struct dp_host *h, struct dp_snap_variable *list, bool deferred)
{
	struct dp_snap_variable *v;
	if (!h->callbacks[DP_EVENT_VARIABLE].n)
		return;
	DL_FOREACH(list, v)
	{
		if (v->is_synthesized)
			continue;
		dp_host_fire_variable(h, v, v->value, deferred);
		if (!v->is_hidden)
			variables(h, v->children, deferred);
	}
}

static void frame(struct dp_host *h, struct dp_snap_frame *f, bool deferred)
{
	struct dp_callbacks *c = &h->callbacks[DP_EVENT_FRAME];
	variables(h, f->variables, deferred);
	for (size_t i = 0; i < c->n; i++)
		if (c->at[i].module->is_deferred == deferred && (!c->at[i].match || dp_match_frame(c->at[i].match, f)))
			call(&c->at[i], f, NULL);
}

static void thread(struct dp_host *h, struct dp_snap_thread *t, bool deferred)
{
	struct dp_callbacks *c = &h->callbacks[DP_EVENT_THREAD];
	struct dp_snap_frame *f;
	DL_FOREACH(t->frames, f)
	if (!f->is_synthesized)
		frame(h, f, deferred);
	for (size_t i = 0; i < c->n; i++)
		if (c->at[i].module->is_deferred == deferred && (!c->at[i].match || dp_match_thread(c->at[i].match, t)))
			call(&c->at[i], t, NULL);
}

static void globals(struct dp_host *h, bool deferred)
{
	struct dp_snap_thread *t;
	variables(h, h->snapshot->globals, deferred);
	DL_FOREACH(h->snapshot->threads, t)
	variables(h, t->variables, deferred);
}

/* ---- one snapshot ------------------------------------------------------------------------------------------------------- */

/* Warns of options for unknown modules: most likely a mistyped id. */
static void check_options(struct dp_host *h)
{
	struct dp_module_option *o;
	const struct pmodule *m;
	DL_FOREACH(h->module_options, o)
	{
		for (m = h->modules; m && strcmp(m->id, o->id); m = m->next)
			;
		if (!m && !o->is_checked)
			dp_host_log(h, DP_LOG_WARNING, NULL, "--module=%s:...: no pmodule has that id", o->id);
		o->is_checked = true;
	}
}

static void reset_all(struct dp_host *h)
{
	struct pmodule *m;
	DL_FOREACH(h->modules, m)
	{
		if (m->is_broken)
			continue;
		const struct dp_entry entry = dp_module_enter(m);
		m->language->reset(m);
		dp_module_leave(m, &entry);
	}
	dp_guard_off();
}

void dp_host_begin(struct dp_host *h, struct dp_snapshot *s)
{
	struct pmodule *m;
	dp_host_end(h);
	if (h->generations)
		reset_all(h);
	check_options(h);
	h->snapshot = s;
	h->generation = ++h->generations;
	h->held_ns = h->made = h->made_bytes = 0;
	DL_FOREACH(h->modules, m)
	{
		m->is_off = m->is_timed_out = false;
		m->errors = 0;
		m->held_ns = m->late_ns = 0;
	}
}

/* For searches by a module; dynprobe's own searches have other limits. */
static bool module_is_over(void *data)
{
	const struct pmodule *m = running;
	(void)data;
	return m && dp_module_expired(m);
}

void dp_host_set_debug_ctx(struct dp_host *h, struct dp_debug_ctx *w)
{
	if (w)
		dp_debug_ctx_bound(w, module_is_over, NULL);
	h->world = w;
	h->reads = w ? dp_debug_ctx_last(w).reads : 0;
}

void dp_host_set_stopped(struct dp_host *h, struct dp_stopped *s)
{
	h->stopped = s;
}

static void begin_walk(struct dp_host *h, enum dp_phase phase)
{
	h->phase = phase;
	h->last_ns = 0;
}

void dp_host_preattach(struct dp_host *h)
{
	begin_walk(h, DP_PHASE_PREATTACH);
	fire(h, DP_EVENT_PREATTACH, h->snapshot);
	dp_guard_off();
}

void dp_host_attach(struct dp_host *h)
{
	begin_walk(h, DP_PHASE_HELD);
	fire(h, DP_EVENT_ATTACH, h->snapshot);
	dp_guard_off();
}

void dp_host_thread(struct dp_host *h, struct dp_snap_thread *t)
{
	begin_walk(h, DP_PHASE_HELD);
	thread(h, t, false); /* keep the guard for the next thread: setting it up costs system calls in the pause */
}

void dp_host_globals(struct dp_host *h)
{
	begin_walk(h, DP_PHASE_HELD);
	globals(h, false);
	dp_guard_off();
}

static bool any_deferred(const struct dp_host *h)
{
	const struct pmodule *m;
	DL_FOREACH(h->modules, m)
	if (m->is_deferred)
		return true;
	return false;
}

void dp_host_postattach(struct dp_host *h)
{
	struct dp_snap_thread *t;
	begin_walk(h, DP_PHASE_LATE);
	if (any_deferred(h)) {
		DL_FOREACH(h->snapshot->threads, t)
		thread(h, t, true);
		globals(h, true);
	}
	fire(h, DP_EVENT_POSTATTACH, h->snapshot);
	end_errors(h);
	dp_guard_off();
}

void dp_host_end(struct dp_host *h)
{
	dp_guard_off();
	h->snapshot = NULL;
	h->world = NULL;
	h->phase = DP_PHASE_NONE;
	h->generation = 0;
	h->source = PMODULE_READ_NONE;
	dp_host_forget_loose(h);
}

/* SPDX-License-Identifier: MIT */
#include "session/process/session.h"

#include "injector/loads.h"
#include "session/code/code_view.h"
#include "session/process/forecast.h"
#include "session/process/pending.h"
#include "session/process/preview.h"
#include "session/process/session_aggs.h"
#include "session/process/session_trap.h"

#include <stdlib.h>
#include <string.h>

#define INSTALL_TRIES 5

static bool unwinds(const struct dp_session *s, const struct dp_probe *p)
{
	return dp_fields_unwind(&p->fields) || dp_aggs_unwind(s->trace);
}

static bool reads_memory(const struct dp_probe *p)
{
	bool reads = dp_fields_may_fault(&p->fields) || dp_expr_reads(p->when);
	for (size_t i = 0; i < p->fields.n && !reads; i++)
		reads = dp_expr_reads(p->fields.field[i].expr) || dp_expr_reads(p->fields.field[i].count);
	return reads;
}

/* Memory other than the thread's own stack may be read by system calls, for which a seccomp filter may kill the process. */
static struct dp_error *check_filter(const struct dp_session *s, const struct dp_probe *p)
{
	if (!dp_target_filtered(s->target) || (!reads_memory(p) && !unwinds(s, p)))
		return NULL;
	return dp_error(DP_TAG_SECCOMP,
	                "under a seccomp filter (%s), probes can only read registers: memory and backtraces need system calls",
	                dp_target_filter_rule(s->target));
}

/* Do calls that this probe does not mean end here, too? Their entries were left out. */
static bool is_only_paired(const struct dp_session *s, size_t i)
{
	const struct dp_typed *typed = &s->trace->typed[i];
	return typed->call.chosen || (typed->entry && s->trace->typed[typed->entry - 1].when);
}

static void plan_probe(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view, uint64_t lost_base, size_t i)
{
	const struct dp_probe *p = &s->trace->probe[i];
	struct dp_place *place = &s->place[i];
	struct dp_image *image = dp_target_image(s->target);
	struct dp_site site = {.addr = dp_addr_of(place->addr)};
	const uint64_t gates = dp_target_gates(s->target);
	struct dp_request request = {
	        .site = place->addr,
	        .probe = (uint16_t)i,
	        .lost = lost_base + i * sizeof(struct dp_lost),
	        .hits = lost_base + dp_aggs_row(s->trace, i) * sizeof(struct dp_lost) + offsetof(struct dp_lost, hits),
	        .fields = place->bound_fields ? &place->fields : &p->fields,
	        .when = place->when ? place->when : p->when,
	        .gate = {gates ? gates + i * sizeof(uint32_t) : 0},
	        .tactics = dp_session_tactics(s, i),
	};
	if (request.when)
		dp_expr_bind((struct dp_expr *)request.when, site.addr);
	site.module = dp_image_module_at(image, site.addr);
	dp_image_function_at(image, site.addr, &site.function);
	/* docs/guarantees.md says how much stack a hit uses. Probes that emit through LTTng switch to another by themselves. */
	request.small_stack = !s->classes && site.module && dp_module_small_stacks(site.module);
	place->refused = check_filter(s, p);
	if (!place->refused && s->classes)
		dp_session_sink_request(s, i, &request, &place->refused);
	if (!place->refused)
		place->refused = dp_session_aggs_request(s, planner, view, i, &request);
	request.only_paired = is_only_paired(s, i);
	if (!place->refused)
		place->refused = dp_code_view_get(view, &site, &request.text);
	if (!place->refused)
		place->refused = dp_target_name_overlap(s->target, place->addr, dp_planner_add(planner, &request, &place->plan));
	place->planned = !place->refused;
	s->nplanned += place->planned;
}

static int by_site_down(const void *a, const void *b, void *data)
{
	const size_t i = *(const size_t *)a, k = *(const size_t *)b;
	const struct dp_place *place = data;
	if (place[i].addr != place[k].addr)
		return place[i].addr < place[k].addr ? 1 : -1;
	return i < k ? 1 : i > k ? -1 : 0;
}

/*
 * From high to low addresses: a punned jump depends on the bytes after it, and the bytes of jumps that are there already give it
 * more possible targets. At one site the last probe comes first: each later plan's stub runs before the earlier ones, so that
 * hits come in the order of the command line. Owned by the caller; NULL: no memory.
 */
static size_t *planning_order(const struct dp_session *s)
{
	const size_t n = s->trace->nprobes;
	size_t *order = malloc((n + 1) * sizeof(*order));
	for (size_t i = 0; order && i < n; i++)
		order[i] = i;
	if (order && n)
		qsort_r(order, n, sizeof(*order), by_site_down, s->place);
	return order;
}

/* A return whose event needs the entry's is placed only if the entry is, so the entry comes first. */
static void plan_with_entry(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view, uint64_t lost_base,
                            size_t i)
{
	const size_t e = s->trace->typed[i].entry;
	struct dp_place *place = &s->place[i], *entry = e ? &s->place[e - 1] : NULL;
	if (place->refused || place->pending || place->planned)
		return;
	if (entry && !entry->refused && !entry->planned)
		plan_probe(s, planner, view, lost_base, e - 1);
	if (entry && entry->refused)
		place->refused = dp_error(entry->refused->tag, "the function's entry, where its arguments are: %s",
		                          entry->refused->message);
	else
		plan_probe(s, planner, view, lost_base, i);
}

static struct dp_error *plan_probes(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view,
                                    uint64_t lost_base)
{
	dp_auto_free size_t *order = planning_order(s);
	if (!order)
		return dp_error_nomem();
	for (size_t i = 0; i < s->trace->nprobes; i++)
		s->place[i].planned = false;
	for (size_t k = 0; k < s->trace->nprobes; k++) {
		const size_t i = order[k];
		DP_TRY(dp_trace_step(s->trace, "planning", k, s->trace->nprobes));
		plan_with_entry(s, planner, view, lost_base, i);
	}
	return NULL;
}

static struct dp_error *plan_all(struct dp_session *s, struct dp_planner *planner, uint64_t lost_base)
{
	struct dp_code_view *view = NULL;
	DP_TRY(dp_code_view_create(dp_target_image(s->target), &view));
	struct dp_error *err = dp_session_trap_plan(s, planner, view); /* first: traps need the hooks */
	if (!err)
		err = plan_probes(s, planner, view, lost_base);
	if (!err && s->classes && s->nplanned)
		s->unhooked = dp_session_plan_hook(s, planner, view);
	if (!err)
		err = dp_pending_plan(s, planner, view);
	dp_code_view_destroy(view);
	return err;
}

static struct dp_error *compile_unwind(struct dp_session *s, uint8_t **ret, size_t *size)
{
	if (!dp_session_wants_unwind(s->trace))
		return NULL;
	dp_auto_free char *dir = dp_cache_dir();
	return dp_unwind_compile(dp_target_image(s->target), dir, dp_stack_effect, ret, size);
}

/* Stores the result of a plan, for its probe or for the hook. Plans of evicted instructions have no probe. */
static void store_result(struct dp_session *s, const struct dp_plan *plan, struct dp_error *refused)
{
	if (s->hooked && plan->site == s->hook.site && plan->probe == DP_NO_PROBE)
		s->unhooked = refused;
	if (dp_pending_result(s, plan, refused))
		return;
	if (plan->probe == DP_NO_PROBE) {
		if (refused != s->unhooked)
			dp_error_destroy(refused);
		return;
	}
	struct dp_place *place = &s->place[plan->probe];
	place->plan = *plan;
	place->refused = refused;
	place->placed = !refused;
}

void dp_session_note_install(struct dp_session *s, const struct dp_install_stats *stats)
{
	const struct dp_install_stats before = s->install;
	s->install = *stats;
	s->install.pause_ns = before.pause_ns > stats->pause_ns ? before.pause_ns : stats->pause_ns;
	if (!stats->why_frozen[0])
		memcpy(s->install.why_frozen, before.why_frozen, sizeof(before.why_frozen));
	s->install.held_ns += before.held_ns;
	s->install.stops += before.stops;
	s->install.vain += before.vain;
}

static struct dp_error *install_plans(struct dp_session *s, struct dp_planner *planner, const uint8_t *unwind, size_t unwind_size)
{
	const struct dp_extent *extents;
	const struct dp_plan *plans;
	const size_t nextents = dp_planner_extents(planner, &extents), nplans = dp_planner_plans(planner, &plans);
	dp_auto_free struct dp_install_result *results = calloc(nplans + 1, sizeof(*results));
	if (!results)
		return dp_error_nomem();
	struct dp_install_stats stats;
	dp_forecast_log(s, plans, nplans);
	struct dp_error *err =
	        dp_target_install(s->target, extents, nextents, plans, nplans, unwind, unwind_size, results, &stats);
	dp_session_note_install(s, &stats); /* also of an attempt that is repeated */
	if (err)
		return err;
	for (size_t k = 0; k < nplans; k++) {
		s->planned[k] = plans[k].probe == DP_NO_PROBE ? SIZE_MAX : plans[k].probe;
		store_result(s, &plans[k], results[k].refused);
	}
	return NULL;
}

struct planning {
	struct dp_space *space;
	struct dp_planner *planner;
};

static void planning_fini(struct planning *p)
{
	dp_planner_destroy(p->planner);
	dp_space_destroy(p->space);
	*p = (struct planning){0};
}

/* Any addresses far from code will do: the generated code's length does not depend on them. */
static const struct dp_runtime nowhere = {
        .agent = DP_NOWHERE,
        .acquire = DP_NOWHERE + 0x100000,
        .read = DP_NOWHERE + 0x100100,
        .string = DP_NOWHERE + 0x100200,
        .backtrace = DP_NOWHERE + 0x100300,
        .park = DP_NOWHERE + 0x100380,
        .finish = DP_NOWHERE + 0x100400,
        .ask = DP_NOWHERE + 0x100500,
        .identity = DP_ID_SELF,
        .tid_offset = 0x2d0,
};

/* Inspects threads, and stops them for a short time. */
static struct dp_error *prepare(struct dp_session *s, struct dp_space *space, struct dp_runtime *runtime, uint64_t *lost_base)
{
	dp_trace_stopping(s->trace, true);
	struct dp_error *err = dp_target_prepare(s->target, space, (unsigned)s->trace->nprobes, runtime, lost_base);
	dp_trace_stopping(s->trace, false);
	return err;
}

static struct dp_error *plan_once(struct dp_session *s, struct planning *p)
{
	struct dp_runtime runtime = nowhere;
	uint64_t lost_base = nowhere.agent;
	planning_fini(p);
	DP_TRY(dp_session_aggs_begin(s));
	if (s->trace->follow)
		DP_TRY(dp_target_follow_check(s->target));
	DP_TRY(dp_target_full_check(s->target));
	dp_session_aggs_nowhere(&runtime);
	DP_TRY(dp_space_from_image(dp_target_image(s->target), &p->space));
	runtime.faults = s->trap && !s->no_faults;
	if (!s->trace->dry_run)
		DP_TRY(prepare(s, p->space, &runtime, &lost_base));
	runtime.flags_shown = dp_session_shows_flags(s);
	runtime.follows = s->trace->follow;
	if (s->classes)
		dp_session_sink_runtime(s, &runtime);
	DP_TRY(dp_planner_create(p->space, &runtime, &p->planner));
	DP_TRY(dp_target_occupy(s->target, p->planner));
	return plan_all(s, p->planner, lost_base);
}

/* Plans with the fault handler, if probes follow pointers. *done: planned with it. */
static struct dp_error *plan_with_faults(struct dp_session *s, struct planning *p, bool *done)
{
	if (!dp_session_faults_wanted(s))
		return NULL;
	struct dp_error *err = dp_target_faults_check(s->target);
	if (!err)
		err = dp_session_trap_begin(s);
	if (!err)
		err = plan_once(s, p);
	*done = !err;
	if (err && err->tag != DP_TAG_TRAP_UNSAFE)
		return err;
	if (err)
		dp_session_faults_refuse(s, err);
	return NULL;
}

/* Plans without traps; with them, if a probe that could use one was refused; without them again, if that fails. */
static struct dp_error *plan(struct dp_session *s, struct planning *p)
{
	bool done = false;
	DP_TRY(plan_with_faults(s, p, &done));
	if (done)
		return NULL;
	DP_TRY(plan_once(s, p));
	const size_t candidates = dp_session_trap_candidates(s);
	if (!candidates)
		return NULL;
	struct dp_error *why = dp_session_trap_begin(s);
	if (!why) {
		dp_session_trap_retry(s);
		why = plan_once(s, p);
		if (!why && dp_session_trap_is_fallback(s) && dp_session_trap_candidates(s) >= candidates)
			why = dp_error(DP_TAG_TRAP_UNSAFE, "a trap does not fit either");
		if (!why)
			return NULL;
		s->trap = dp_session_trap_destroy(s->trap);
		dp_session_trap_retry(s);
		struct dp_error *err = plan_once(s, p);
		if (err) {
			dp_error_destroy(why);
			return err;
		}
	}
	dp_session_trap_refuse(s, why);
	dp_error_destroy(why);
	return NULL;
}

static struct dp_error *plan_and_install_once(struct dp_session *s, const uint8_t *unwind, size_t unwind_size)
{
	struct planning p = {0};
	struct dp_error *err = plan(s, &p);
	if (!err)
		err = dp_trace_step(s->trace, "placing", 0, 0);
	dp_trace_changing(s->trace);
	if (!err && (s->nplanned || s->pending))
		err = install_plans(s, p.planner, unwind, unwind_size);
	planning_fini(&p);
	return err;
}

/* A program that maps memory all the time may use the planned room before the installation: then everything is planned again. */
static struct dp_error *plan_and_install(struct dp_session *s)
{
	dp_auto_free uint8_t *unwind = NULL;
	size_t unwind_size = 0;
	DP_TRY(compile_unwind(s, &unwind, &unwind_size));
	dp_session_trap_spare(s);
	for (int tried = 1;; tried++) {
		struct dp_error *err = plan_and_install_once(s, unwind, unwind_size);
		const bool no_handler = err && err->tag == DP_TAG_TRAP_UNSAFE && s->trap && !s->no_faults;
		if (err && err->tag == DP_TAG_TRAP_UNSAFE && dp_session_trap_is_fallback(s))
			dp_session_trap_drop_fallback(s, err);
		else if (no_handler && !s->by_calls.later && dp_target_faults_wait(s->target))
			dp_session_faults_put_off(s, err);
		else if (no_handler)
			dp_session_faults_refuse(s, err);
		else if (!err || err->tag != DP_TAG_CHANGED || s->pending || s->trace->command || tried == INSTALL_TRIES)
			return err;
		else
			dp_error_destroy(err);
		dp_session_trap_forget(s);
		if (!s->trace->command)
			DP_TRY(dp_target_refresh(s->target));
	}
}

struct dp_error *dp_session_install(struct dp_session *s)
{
	if (s->partial && !dp_session_has_places(s))
		return NULL;
	if (s->lttng) {
		dp_trace_changing(s->trace);
		DP_TRY(dp_session_sink(s));
	}
	struct dp_error *err = plan_and_install(s);
	if (!err)
		dp_session_faults_installed(s);
	if (!err)
		err = dp_pending_armed(s);
	if (!err)
		dp_session_park_refused(s);
	if (!err && s->lttng && s->nplanned)
		err = dp_session_prime_late(s);
	return err;
}

struct dp_error *dp_session_dry_run(struct dp_session *s)
{
	struct planning p = {0};
	dp_session_trap_spare(s);
	struct dp_error *err = plan(s, &p);
	if (!err)
		err = dp_preview_make(s, p.planner);
	planning_fini(&p);
	return err;
}

struct dp_error *dp_session_keep(struct dp_session *s, const char *manifest)
{
	DP_TRY(dp_target_keep(s->target, manifest));
	s->kept = true;
	return NULL;
}

size_t dp_session_placed(const struct dp_session *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->trace->nprobes; i++)
		n += s->place[i].placed;
	return n;
}

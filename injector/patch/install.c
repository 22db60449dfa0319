/* SPDX-License-Identifier: MIT */
/*
 * Installation as one transaction (decision 8). First everything is mapped and filled while the target runs. Then the sites are
 * written (install_sites.c): with all threads held, or live (decision 0015).
 */
#include "injector/patch/install.h"
#include "base/duration.h"
#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/semaphores.h"
#include "injector/target/group/group.h"
#include "injector/target/shared.h"
#include "injector/tracee/stop/holds.h"
#include "injector/trap/trap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MAP_TRIES 20

static struct dp_error *add_extents(struct install *i, uint64_t *file_size)
{
	struct dp_installation *in = &i->t->in;
	struct dp_region *grown = realloc(in->region, (DP_REGION_FIXED + i->nextents) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	in->region = grown;
	in->region[DP_REGION_TABLES].size = dp_page_up(i->unwind_size) + dp_tables_room(i->t, dp_page_up(i->unwind_size));
	for (size_t k = 0; k < i->nextents; k++)
		in->region[DP_REGION_FIXED + k] =
		        (struct dp_region){.addr = i->extents[k].addr, .size = i->extents[k].n, .prot = PROT_READ | PROT_EXEC};
	in->nregions = DP_REGION_FIXED + i->nextents;
	*file_size = 0;
	for (size_t k = 0; k < in->nregions; k++) {
		in->region[k].offset = *file_size;
		*file_size += in->region[k].size;
	}
	dp_layout_cores(in, i->t->options.dump_ring);
	return NULL;
}

/* A site over another probe covers all of that probe's bytes, so that its removal restores them all. */
static void cover(struct dp_target *t, struct dp_placed *p)
{
	const struct dp_placed *below = dp_resident_below(t, &t->in, p);
	if (below && below->len > p->len)
		p->len = p->nchanged = below->len;
}

/*
 * If the handler takes faults, every probe is guarded, and so installed after it: every fault must have an address of the
 * program's. A plan that relies on a guarded one is guarded too; it comes later in the order.
 */
static bool is_guarded(const struct install *i, size_t k)
{
	const struct dp_plan *plan = &i->plans[k];
	bool guarded = dp_plan_is_guarded(plan) || (dp_target_faults_ready(i->t) && plan->probe != DP_NO_PROBE);
	for (size_t n = 0; !guarded && n < plan->nsupports; n++) {
		struct dp_near near = dp_near(&i->t->in, plan->support[n], plan->support[n] + 1);
		for (size_t j; !guarded && (j = dp_near_next(&near)) != SIZE_MAX;)
			guarded = j < k && i->t->in.placed[j].guarded;
	}
	return guarded;
}

static struct dp_error *add_placed(struct install *i)
{
	struct dp_installation *in = &i->t->in;
	in->placed = calloc(i->nplans + 1, sizeof(*in->placed));
	i->refused = calloc(i->nplans + 1, sizeof(*i->refused));
	i->held = calloc(i->nplans + 1, sizeof(*i->held));
	if (!in->placed || !i->refused || !i->held)
		return dp_error_nomem();
	in->nplaced = i->nplans;
	for (size_t k = 0; k < i->nplans; k++) {
		const struct dp_plan *plan = &i->plans[k];
		struct dp_placed *p = &in->placed[k];
		*p = (struct dp_placed){.addr = plan->site,
		                        .probe = plan->probe,
		                        .len = plan->len,
		                        .nchanged = plan->changed,
		                        .stub = plan->stub,
		                        .stub_end = plan->stub_end};
		p->npairs = plan->npairs;
		memcpy(p->pair, plan->pair, sizeof(p->pair));
		memcpy(p->old_bytes, plan->old_bytes, sizeof(p->old_bytes));
		memcpy(p->new_bytes, plan->new_bytes, sizeof(p->new_bytes));
		p->calls_out = plan->calls_out;
		cover(i->t, p);
		in->calls_out |= p->calls_out;
	}
	dp_installation_index(in);
	for (size_t k = 0; k < i->nplans; k++)
		in->placed[k].guarded = is_guarded(i, k);
	in->sink = i->t->sink;
	in->calls_out |= in->sink != 0;
	return NULL;
}

void dp_install_note_hold(struct install *i, const struct dp_freeze *f, const char *what)
{
	struct dp_install_stats *stats = i->stats;
	char held[DP_DURATION_TEXT];
	dp_target_log(i->t, "%s: threads held for %s", what, dp_duration(f->end_ns - f->begin_ns, held));
	if (f->end_ns - f->begin_ns > stats->pause_ns)
		stats->pause_ns = f->end_ns - f->begin_ns;
}

typedef struct dp_error *(*map_step)(struct dp_target *t, struct dp_borrow *b, uint64_t file_size);

static struct dp_error *map_finish(struct dp_target *t, struct dp_borrow *b, uint64_t file_size)
{
	(void)file_size;
	DP_TRY(dp_stopped_ours(t));
	return dp_map_finish(t, b, NULL);
}

/* A program that is held before its first instruction stays held, so one borrowing is enough. */
static struct dp_error *map_whole(struct dp_target *t, struct dp_borrow *b, uint64_t file_size)
{
	if (!t->installed)
		DP_TRY(dp_map_begin(t, b, file_size));
	t->installed = true; /* from here on there is something to remove */
	return dp_map_finish(t, b, NULL);
}

/* ---- live: one thread works at a time, and only briefly -------------------------------------------------------------------- */

#define BORROW_NS UINT64_C(1000000000)

static struct dp_error *lend(struct install *i, map_step step, uint64_t file_size, struct dp_lease *lease)
{
	struct dp_target *t = i->t;
	struct dp_borrow *b = NULL;
	struct dp_priority priority;
	uint64_t held = 0;
	dp_priority_raise(&priority);
	struct dp_error *err = dp_borrow_one(t, BORROW_NS, &b), *end = NULL;
	if (!err) {
		*lease = (struct dp_lease){.until_ns = dp_now_ns() + DP_LEASE_NS};
		err = step ? step(t, b, file_size) : dp_stopped_ours(t);
		if (!err && !step)
			err = dp_map_finish(t, b, lease);
		end = dp_borrow_end(b, &held);
	}
	dp_priority_restore(&priority);
	if (held > i->stats->pause_ns)
		i->stats->pause_ns = held;
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

static struct dp_error *map_live(struct install *i, uint64_t file_size)
{
	struct dp_lease lease = {0};
	DP_TRY(lend(i, dp_map_begin, file_size, &lease));
	i->t->installed = true; /* from here on there is something to remove */
	do
		DP_TRY(lend(i, NULL, 0, &lease));
	while (lease.more);
	return NULL;
}

void dp_install_log_why(struct install *i, const char *why)
{
	struct dp_install_stats *stats = i->stats;
	stats->live = false;
	if (stats->why_frozen[0])
		return;
	snprintf(stats->why_frozen, sizeof(stats->why_frozen), "%s", why);
	dp_target_log(i->t, "all threads are held: %s", why);
}

/* True if no thread could be borrowed: then nothing was done, and nothing must be undone. */
static bool nobody_to_lend(const struct dp_error *err)
{
	return err->tag == DP_TAG_NO_THREAD || err->tag == DP_TAG_UNSTOPPABLE || err->tag == DP_TAG_VFORK;
}

/* True if the error only means that all threads must be held. */
static bool go_on_held(struct install *i, struct dp_error *err)
{
	if (!nobody_to_lend(err) && err->tag != DP_TAG_CHANGED && err->tag != DP_TAG_REMOTE && err->tag != DP_TAG_NO_SPACE &&
	    err->tag != DP_TAG_SYS)
		return false;
	dp_install_log_why(i, err->message);
	dp_error_destroy(err);
	return true;
}

/* ---- with all threads held ------------------------------------------------------------------------------------------------ */

static struct dp_error *map_held(struct install *i, struct dp_freeze *f, map_step step, uint64_t file_size)
{
	struct dp_target *t = i->t;
	struct dp_borrow *b = NULL;
	DP_TRY(dp_borrow_held(t, f, &b));
	struct dp_error *err = step(t, b, file_size);
	struct dp_error *end = dp_borrow_end(b, NULL);
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

/*
 * Holds all threads although one works: on a busy machine that one would wait for a processor at each call, and be held longer.
 */
static struct dp_error *map_once(struct install *i, map_step step, uint64_t file_size)
{
	struct dp_freeze f = {0};
	if (i->t->launch)
		return map_held(i, dp_launch_freeze(i->t->launch), step, file_size);
	DP_TRY(dp_freeze_with_retry(i->t, &f));
	struct dp_error *err = map_held(i, &f, step, file_size);
	dp_thaw_all(&f);
	i->stats->freezes++;
	dp_install_note_hold(i, &f, "mapping");
	return err;
}

static struct dp_error *map_patiently(struct install *i, map_step step, uint64_t file_size)
{
	for (int tried = 0;; tried++) {
		struct dp_priority priority;
		dp_priority_raise(&priority);
		struct dp_error *err = map_once(i, step, file_size);
		dp_priority_restore(&priority);
		if (!err || err->tag != DP_TAG_NO_THREAD || tried >= MAP_TRIES)
			return err;
		dp_error_destroy(err); /* a moment later a thread is elsewhere */
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
}

static struct dp_error *map(struct install *i, uint64_t file_size)
{
	struct dp_error *err = i->stats->live ? map_live(i, file_size) : NULL;
	if (!err && i->stats->live)
		return NULL;
	if (err && (!nobody_to_lend(err) || !go_on_held(i, err)))
		return err;
	if (i->t->installed) /* the first step is done */
		return map_patiently(i, map_finish, file_size);
	if (i->t->launch)
		return map_patiently(i, map_whole, file_size);
	DP_TRY(map_patiently(i, dp_map_begin, file_size));
	i->t->installed = true; /* from here on there is something to remove */
	return map_patiently(i, map_finish, file_size);
}

static struct dp_error *fill(struct install *i)
{
	struct dp_target *t = i->t;
	struct dp_agent_image agent;
	DP_TRY(dp_agent_image_load(&agent));
	if (t->ahead)
		DP_TRY(dp_file_allocate(t->memfd, t->file_size));
	DP_TRY(dp_shared_write(t, &t->in.region[DP_REGION_TEXT], agent.bytes, agent.size));
	if (i->unwind_size) {
		DP_TRY(dp_shared_write(t, &t->in.region[DP_REGION_TABLES], i->unwind, i->unwind_size));
		dp_tables_began(t, i->unwind, i->unwind_size);
	}
	for (size_t k = 0; k < i->nextents; k++)
		DP_TRY(dp_shared_write(t, &t->in.region[DP_REGION_FIXED + k], i->extents[k].bytes, i->extents[k].n));
	DP_TRY(dp_trap_fill(t, i->plans, i->nplans));
	return dp_shared_fill(t);
}

/* ---- guarded sites: after the hooks ---------------------------------------------------------------------------------------- */

static struct dp_error *check_hooks(const struct install *i)
{
	for (size_t k = 0; k < i->nplans; k++)
		if (i->plans[k].probe == DP_NO_PROBE && i->results[k].refused)
			return dp_error(DP_TAG_TRAP_UNSAFE, "cannot hook a system call: %s", i->results[k].refused->message);
	return NULL;
}

/* Without the handler: refuses the sites that need it, and writes the others. */
static struct dp_error *do_without(struct install *i, const struct dp_error *why)
{
	dp_target_log(i->t, "the trap and fault handler is not installed: %s", why->message);
	for (size_t k = 0; k < i->nplans; k++) {
		struct dp_placed *p = &i->t->in.placed[k];
		if (!p->guarded || p->written)
			continue;
		p->guarded = false;
		p->entry->flags = (uint16_t)(p->entry->flags & ~DP_SITE_GUARDED);
		if (dp_plan_is_guarded(&i->plans[k]))
			dp_install_refuse(i, k, DP_TAG_TRAP_UNSAFE, why->message);
	}
	return dp_install_sites(i, false);
}

/* Loads that may fault can be planned again without the handler, traps cannot. */
static bool may_plan_anew(const struct install *i)
{
	for (size_t k = 0; k < i->nplans; k++)
		if (i->plans[k].nfixups)
			return true;
	return false;
}

/* Probes that cannot be made in another way justify more attempts, each of which holds all threads. */
static bool needs_handler(const struct install *i)
{
	for (size_t k = 0; k < i->nplans; k++)
		if (i->plans[k].tactic == DP_TACTIC_TRAP || (i->plans[k].guarded && !i->plans[k].nfixups))
			return true;
	return false;
}

/* Guards nothing for now; the handler is installed later, if its hooks are in place. */
static struct dp_error *put_off(struct install *i)
{
	struct dp_error *err = check_hooks(i);
	dp_trap_wait(i->t, err, !err);
	return dp_error_destroy(err);
}

static struct dp_error *arm(struct install *i)
{
	struct dp_priority priority;
	struct dp_error *err = check_hooks(i);
	const bool hooked = !err;
	if (hooked) {
		dp_install_log_why(i, "the trap and fault handler is installed with all threads held");
		dp_priority_raise(&priority);
		err = dp_trap_arm(i->t, needs_handler(i));
		dp_priority_restore(&priority);
	}
	if (i->t->trap.held_ns > i->stats->pause_ns) /* of failed attempts too */
		i->stats->pause_ns = i->t->trap.held_ns;
	if (err)
		dp_trap_wait(i->t, err, hooked);
	return err;
}

static struct dp_error *add_guarded(struct install *i)
{
	if (i->t->trap.later)
		return put_off(i);
	if (!dp_trap_planned(i->t, i->plans, i->nplans))
		return NULL;
	struct dp_error *err = arm(i);
	if (!err)
		return dp_install_sites(i, true);
	if (may_plan_anew(i))
		return err;
	struct dp_error *end = do_without(i, err);
	dp_error_destroy(err);
	return end;
}

/* ---- the transaction ------------------------------------------------------------------------------------------------------- */

static struct dp_error *transaction(struct install *i)
{
	uint64_t file_size = 0;
	DP_TRY(add_extents(i, &file_size));
	DP_TRY(add_placed(i));
	i->t->file_size = file_size;
	DP_TRY(dp_limits_name(&i->t->process, &i->t->need, map(i, file_size)));
	dp_installation_index(&i->t->in); /* with the current mappings */
	DP_TRY(fill(i));
	i->announced = true;
	dp_semaphores_raise(i->t, i->plans, i->nplans); /* as late as possible: we may be killed at any moment */
	DP_TRY(dp_install_sites(i, false));
	return add_guarded(i);
}

/*
 * If the target ended or called exec after the first probes were written, these may have been hit, and their records are here: no
 * error. The others were not placed in time.
 */
static struct dp_error *unless_hit(struct install *i, struct dp_error *err)
{
	bool written = false;
	if (!err || (err->tag != DP_TAG_GONE && err->tag != DP_TAG_NO_PROCESS && err->tag != DP_TAG_ZOMBIE))
		return err;
	for (size_t k = 0; k < i->nplans; k++)
		written |= i->t->in.placed && i->t->in.placed[k].written;
	for (size_t k = 0; written && k < i->nplans; k++)
		if (!i->t->in.placed[k].written && !i->results[k].refused)
			i->results[k].refused = dp_error_advise(dp_error(err->tag, "%s", err->message), dp_error_remedy(err));
	return written ? dp_error_destroy(err) : err;
}

/*
 * Reports what cannot be removed, because no later step will. Callers mend some failures by another installation, which would
 * stand on what is left of this one: so none of them gets such a failure's tag.
 */
static struct dp_error *left_over(struct dp_target *t, struct dp_error *err, const struct dp_remove_report *report,
                                  const struct dp_error *failed)
{
	const bool gone =
	        failed && (failed->tag == DP_TAG_GONE || failed->tag == DP_TAG_NO_PROCESS || failed->tag == DP_TAG_ZOMBIE);
	struct dp_error *more =
	        dp_error(gone ? failed->tag : DP_TAG_BUSY,
	                 "probes of an installation that failed cannot be removed from process %d yet: %s (it failed: %s)",
	                 t->process.pid, failed ? failed->message : report->why, err->message);
	dp_error_destroy(err);
	return gone ? more : dp_error_advise(more, "dynprobe detach --pid PID removes what is left; until then it does nothing");
}

static struct dp_error *undo(struct dp_target *t, struct dp_error *err, struct dp_install_stats *stats)
{
	struct dp_remove_report report;
	struct dp_error *failed = dp_target_remove(t, &report);
	stats->pause_ns = report.pause_ns > stats->pause_ns ? report.pause_ns : stats->pause_ns;
	stats->held_ns += report.held_ns;
	stats->stops += report.stops;
	stats->vain += report.vain;
	if (failed || report.left_sites || report.left_bytes)
		err = left_over(t, err, &report, failed);
	dp_error_destroy(failed);
	return err;
}

static void note_holds(struct dp_install_stats *stats)
{
	const struct dp_holds h = dp_holds_take();
	stats->pause_ns = h.longest_ns;
	stats->held_ns = h.sum_ns;
	stats->stops = h.stops;
	stats->vain = h.vain;
}

struct dp_error *dp_target_install(struct dp_target *t, const struct dp_extent *extents, size_t nextents,
                                   const struct dp_plan *plans, size_t nplans, const void *unwind, size_t unwind_size,
                                   struct dp_install_result *results, struct dp_install_stats *stats)
{
	struct install i = {.t = t,
	                    .extents = extents,
	                    .nextents = nextents,
	                    .plans = plans,
	                    .nplans = nplans,
	                    .unwind = unwind,
	                    .unwind_size = unwind_size,
	                    .results = results,
	                    .stats = stats};
	const char *why = dp_not_live(t);
	i.live = !why;
	*stats = (struct dp_install_stats){.live = !why};
	if (why)
		snprintf(stats->why_frozen, sizeof(stats->why_frozen), "%s", why);
	t->doing = DP_PLACING;
	struct dp_error *err = unless_hit(&i, transaction(&i));
	t->doing = DP_AT_REST;
	note_holds(stats);
	if (i.announced)
		dp_semaphores_settle(t, plans, nplans);
	free(i.refused);
	free(i.held);
	return err && t->installed ? undo(t, err, stats) : err;
}

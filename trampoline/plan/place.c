/* SPDX-License-Identifier: MIT */
/*
 * Places one request. Its stub is generated first, since springboards must know their target. Then the tactics are tried in
 * order, first with springboards in pages that we have anyway: a page per springboard would cost 4 KiB and a mapping each.
 *
 * A site reserves two kinds of bytes: those that its jump changes, and those that the jump relies on without changing them (a
 * pun's tail). Several jumps may rely on the same byte, whoever wrote it; but a byte that one relies on or changes must not be
 * changed by another.
 */
#include "trampoline/plan/place.h"

#include "trampoline/arch/x86_64/asm/encode.h"
#include "trampoline/arch/x86_64/relocate/relocate.h"
#include "trampoline/arch/x86_64/tactics/window.h"
#include "trampoline/code/text.h"

#include <inttypes.h>
#include <string.h>

#define BUDGET 16384u /* places that one jump's search may try */
#define HURRY  256u   /* the same, if the only purpose is to save pages */
/*
 * A few probes get the simplest patch, at the price of a page for many springboards. From this number of pages on, rather evicts
 * a neighbour than takes another page.
 */
#define MANY_PAGES 64u
#define MOST_PAGES 128u /* from this number on even by a thorough search, which costs as much as all other work */
#define SPARSE     40u  /* bytes of a module for each plan */

void dp_room_init(struct dp_room *room, const struct dp_planner *planner, const struct dp_job *job)
{
	*room = (struct dp_room){
	        .pages = planner->pages, .space = planner->space, .fresh = job->fresh, .budget = job->hurry ? HURRY : BUDGET,
	        .variant = planner->variant};
}

struct dp_error *dp_item_enter(struct dp_planner *planner, struct dp_item *item, const struct dp_chain *knot,
                               const struct dp_hop *hop, uint32_t *ret)
{
	struct dp_plan *plan = &item->plan;
	if (hop->springboard) {
		DP_TRY(dp_springboard_put(planner->pages, hop->target, hop->springboard, plan->entry));
		plan->springboard = hop->target;
		item->springboard = hop->springboard;
		dp_plan_pair(plan, hop->target, plan->site, false);
	}
	for (uint8_t x = 0; knot && x < plan->len; x++) {
		plan->new_bytes[x] = knot->byte[plan->site - knot->base + x];
		if (x >= plan->changed)
			plan->old_bytes[x] = plan->new_bytes[x];
	}
	*ret = dp_sites_new(planner->sites, item);
	if (*ret != DP_NO_ITEM && dp_sites_enter(planner->sites, *ret))
		return NULL;
	if (hop->springboard)
		dp_pages_drop(planner->pages, hop->target, hop->springboard);
	plan->springboard = 0;
	return dp_error_nomem();
}

/* Makes the item's springboard lead to `to`. An error changes nothing. */
static struct dp_error *redirect(struct dp_planner *planner, const struct dp_item *item, uint64_t to)
{
	return dp_springboard_put(planner->pages, item->plan.springboard, item->springboard, to);
}

void dp_item_init(struct dp_item *item, const struct dp_request *request, const struct dp_text *text, uint64_t site)
{
	size_t n;
	memset(item, 0, sizeof(*item));
	item->plan.site = site;
	item->plan.probe = request ? request->probe : DP_NO_PROBE;
	item->asked = request != NULL;
	item->below = DP_NO_ITEM;
	item->text = *text;
	if (request)
		item->request = *request;
	const uint8_t *bytes = dp_text_at(text, site, &n);
	memcpy(item->plan.old_bytes, bytes, n < sizeof(item->plan.old_bytes) ? n : sizeof(item->plan.old_bytes));
	memcpy(item->plan.new_bytes, item->plan.old_bytes, sizeof(item->plan.new_bytes));
}

/* ---- one jump ------------------------------------------------------------------------------------------------------------- */

/* Replaces *err, which may be NULL, by the result of the next attempt; true if that succeeded. */
static bool outcome(struct dp_error **err, struct dp_error *next)
{
	dp_error_destroy(*err);
	*err = next;
	return !next;
}

/* A jump that changes only the `own` bytes at the site. If there is none, *err does not change. */
static bool single(struct dp_job *job, const struct dp_ground *ground, enum dp_tactic tactic, uint8_t own, uint32_t *ret,
                   struct dp_error **err)
{
	struct dp_plan *plan = &job->item->plan;
	struct dp_room room;
	struct dp_chain knot;
	dp_room_init(&room, job->planner, job);
	dp_chain_site(&knot, plan->site, ground->byte, ground->state, own);
	knot.room = &room;
	knot.hop[0].entry = plan->entry;
	knot.hop[0].direct = true;
	if (!dp_chain_solve(&knot))
		return false;
	plan->tactic = tactic;
	plan->len = dp_hop_end(&knot.hop[0]);
	plan->changed = own < plan->len ? own : plan->len;
	return outcome(err, dp_item_enter(job->planner, job->item, &knot, &knot.hop[0], ret));
}

static bool is_free(const struct dp_ground *ground, uint8_t n)
{
	for (uint8_t x = 0; x < n; x++)
		if (ground->state[x])
			return false;
	return true;
}

/* Whether evicting a neighbour to save a page is worth it. Not if most neighbours will be probed themselves. */
static bool saves_pages(const struct dp_job *job)
{
	uint64_t start, end;
	dp_text_bounds(job->request->text, &start, &end);
	return dp_pages_n(job->planner->pages) > MANY_PAGES && dp_sites_n(job->planner->sites) < (end - start) / SPARSE;
}

/* Tactics that displace the site's instruction only: with existing pages, then with fresh ones. */
static bool alone(struct dp_job *job, const struct dp_ground *ground, unsigned allowed, uint32_t *ret, struct dp_error **err)
{
	const uint8_t len = job->first.len;
	const enum dp_tactic simple = len < DP_JMP_NEAR ? DP_TACTIC_PUN : DP_TACTIC_JUMP;
	const bool simply = allowed >> simple & 1, others = allowed >> DP_TACTIC_EVICT & 1 && len < DP_JMP_NEAR && !job->planner->plain;
	if (simply && single(job, ground, simple, len, ret, err))
		return true;
	if (others && saves_pages(job)) {
		job->hurry = true;
		if (outcome(err, dp_evict(job, ret)))
			return true;
		job->hurry = false;
		if (dp_pages_n(job->planner->pages) > MOST_PAGES && outcome(err, dp_evict(job, ret)))
			return true;
	}
	job->fresh = true;
	if (simply && single(job, ground, simple, len, ret, err))
		return true;
	return others && outcome(err, dp_evict(job, ret));
}

static struct dp_error *put_window(struct dp_job *job, const struct dp_ground *ground, const struct dp_fit *fit, uint32_t *ret)
{
	struct dp_error *err = NULL;
	struct dp_plan *plan = &job->item->plan;
	const uint8_t own = fit->covered < DP_JMP_NEAR ? fit->covered : DP_JMP_NEAR;
	if (!is_free(ground, own))
		return dp_error(DP_TAG_OVERLAP, "other probes are in the way");
	const struct dp_stub_tail code = {fit->insn, fit->ninsns, 0};
	DP_TRY(dp_stubs_put(job->planner, job->request->text, job->request, &code, plan));
	plan->ninterior = fit->ninterior;
	memcpy(plan->interior, fit->interior, sizeof(plan->interior));
	job->fresh = true;
	if (!single(job, ground, DP_TACTIC_WINDOW, own, ret, &err) && !err)
		err = dp_error(DP_TAG_NO_SPACE, "no free address within reach of the jump");
	if (err)
		dp_stubs_drop(job->planner, plan);
	return err;
}

/* As many instructions as the jump needs; else fewer, down to two. Keeps the first refusal, which is the most informative. */
static struct dp_error *window(struct dp_job *job, const struct dp_ground *ground, uint32_t *ret)
{
	const struct dp_text *text = job->request->text;
	struct dp_error *first = NULL;
	struct dp_fit fit;
	for (uint8_t most = DP_FIT_INSNS; most > 1; most = (uint8_t)(fit.heads < most ? fit.heads : most) - 1) {
		struct dp_error *err = dp_window_fit(dp_planner_known(job->planner, text), text, &job->first, most, &fit);
		if (!err)
			err = put_window(job, ground, &fit, ret);
		if (!err) {
			dp_error_destroy(first);
			return NULL;
		}
		if (first)
			dp_error_destroy(err);
		else
			first = err;
		if (fit.heads < 2)
			break;
	}
	return first;
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------- */

/* Ranks refusals: about the instruction itself, then other probes, then room, then its length. */
static int weight(enum dp_tag tag)
{
	switch (tag) {
	case DP_TAG_TOO_SHORT:
		return 0;
	case DP_TAG_NO_SPACE:
		return 1;
	case DP_TAG_OVERLAP:
		return 2;
	default:
		return 3;
	}
}

/* Merges the tactics' refusals into one error, with the highest-ranking tag. */
static struct dp_error *collect(struct dp_error *all, struct dp_error *one, enum dp_tactic tactic)
{
	/* The site's own instruction is known to be movable: a window complains about the following ones. */
	bool follower = one->tag == DP_TAG_UNDECODABLE || one->tag == DP_TAG_UNRELOCATABLE;
	enum dp_tag tag = tactic == DP_TACTIC_WINDOW && follower ? DP_TAG_TOO_SHORT : one->tag;
	if (all && weight(all->tag) >= weight(tag))
		tag = all->tag;
	struct dp_error *both =
	        dp_error(tag, "%s%s%s: %s", all ? all->message : "", all ? "; " : "", dp_tactic_name(tactic), one->message);
	dp_error_destroy(all);
	dp_error_destroy(one);
	return both;
}

static struct dp_error *simple_refusal(const struct dp_insn *insn, enum dp_tactic tactic)
{
	const bool is_short = insn->len < DP_JMP_NEAR;
	if (tactic == DP_TACTIC_JUMP && is_short)
		return dp_error(DP_TAG_TOO_SHORT, "the instruction has only %u bytes", insn->len);
	if (tactic == DP_TACTIC_JUMP || is_short)
		return dp_error(DP_TAG_NO_SPACE, "no free address within reach of the jump");
	return dp_error(DP_TAG_TOO_SHORT, "the instruction is long enough for a whole jump");
}

static struct dp_error *refuse(const struct dp_insn *insn, struct dp_error *all)
{
	char text[DP_INSN_TEXT];
	dp_insn_text(insn, text);
	return all ? dp_error_wrap(all, "%s: no jump fits", text) : dp_error(DP_TAG_TOO_SHORT, "%s: no tactic is allowed", text);
}

/* ---- a new site ------------------------------------------------------------------------------------------------------ */

static struct dp_error *jumps(struct dp_job *job, const struct dp_ground *ground, unsigned allowed, uint32_t *ret)
{
	const struct dp_stub_tail code = {&job->first, 1, 0};
	struct dp_error *all = NULL, *err = NULL;
	if (allowed & (1u << DP_TACTIC_JUMP | 1u << DP_TACTIC_PUN | 1u << DP_TACTIC_EVICT)) {
		DP_TRY(dp_stubs_put(job->planner, job->request->text, job->request, &code, &job->item->plan));
		if (alone(job, ground, allowed, ret, &err))
			return NULL;
		dp_stubs_drop(job->planner, &job->item->plan);
	}
	for (enum dp_tactic t = DP_TACTIC_JUMP; t <= DP_TACTIC_PUN; t++)
		if (allowed >> t & 1)
			all = collect(all, simple_refusal(&job->first, t), t);
	if (err)
		all = collect(all, err, DP_TACTIC_EVICT);
	if (allowed >> DP_TACTIC_WINDOW & 1) {
		err = window(job, ground, ret);
		if (!err) {
			dp_error_destroy(all);
			return NULL;
		}
		all = collect(all, err, DP_TACTIC_WINDOW);
	}
	return refuse(&job->first, all);
}

static struct dp_error *trap(struct dp_job *job, uint32_t *ret)
{
	const struct dp_stub_tail code = {&job->first, 1, 0};
	const struct dp_hop none = {0};
	struct dp_plan *plan = &job->item->plan;
	DP_TRY(dp_stubs_put(job->planner, job->request->text, job->request, &code, plan));
	plan->tactic = DP_TACTIC_TRAP;
	plan->len = plan->changed = 1;
	plan->new_bytes[0] = DP_INT3;
	struct dp_error *err = dp_item_enter(job->planner, job->item, NULL, &none, ret);
	if (err)
		dp_stubs_drop(job->planner, plan);
	return err;
}

static struct dp_error *place_new(struct dp_job *job, unsigned allowed, bool traps, uint32_t *ret)
{
	struct dp_ground ground;
	struct dp_item item;
	uint64_t from = 0;
	const uint64_t site = job->request->site;
	const uint8_t own = traps ? 1 : job->first.len;
	dp_sites_bytes(job->planner->sites, job->request->text, site, sizeof(ground.byte), ground.byte, ground.state);
	if (!is_free(&ground, own)) {
		uint32_t i = dp_sites_touching(job->planner->sites, site, own, &from);
		return dp_error(DP_TAG_OVERLAP, "the probe at 0x%" PRIx64 " is in the way",
		                i == DP_NO_ITEM ? site : dp_sites_item(job->planner->sites, i)->plan.site);
	}
	dp_item_init(&item, job->request, job->request->text, site);
	item.plan.guarded = job->first.guarded;
	job->item = &item;
	return traps ? trap(job, ret) : jumps(job, &ground, allowed, ret);
}

/* ---- a site in use --------------------------------------------------------------------------------------------------- */

/* An evicted instruction becomes a probe: it gets a stub with the probe, its jump stays. */
static struct dp_error *promote(struct dp_job *job, struct dp_item *item)
{
	struct dp_planner *planner = job->planner;
	const struct dp_stub_tail code = {&job->first, 1, 0};
	struct dp_plan plan = item->plan;
	plan.probe = job->request->probe;
	DP_TRY(dp_stubs_put(planner, job->request->text, job->request, &code, &plan));
	struct dp_error *err = redirect(planner, item, plan.entry);
	if (!err && !dp_copies_lead(planner, item)) {
		dp_error_destroy(redirect(planner, item, item->plan.entry));
		err = dp_error(DP_TAG_NO_SPACE, "a copy of the instruction cannot lead to its probe");
	}
	if (err) {
		dp_stubs_drop(planner, &plan);
		return err;
	}
	dp_plan_pair(&plan, plan.springboard, plan.site, false);
	dp_stubs_drop(planner, &item->plan);
	item->plan = plan;
	item->asked = true;
	item->request = *job->request;
	item->text = *job->request->text;
	item->request.text = &item->text;
	return NULL;
}

/* Replaces a jump that leads directly to the older stub. The new one relies on at least as many bytes. */
static struct dp_error *jump_anew(struct dp_job *job, const struct dp_item *base, uint32_t *ret)
{
	struct dp_ground ground;
	struct dp_error *err = NULL;
	if (base->nusers) /* a neighbour's jump has this one's bytes as its tail */
		return dp_error(DP_TAG_NO_SPACE, "the existing jump cannot change: other jumps rely on its bytes");
	dp_sites_bytes(job->planner->sites, job->request->text, base->plan.site, sizeof(ground.byte), ground.byte, ground.state);
	job->fresh = true;
	if (!single(job, &ground, base->plan.tactic, base->plan.changed, ret, &err) && !err)
		return dp_error(DP_TAG_NO_SPACE, "no free address within reach of a second jump");
	if (!err) {
		struct dp_plan *plan = &dp_sites_item(job->planner->sites, *ret)->plan;
		plan->len = plan->len < base->plan.len ? base->plan.len : plan->len;
	}
	return err;
}

static struct dp_error *jump_as_before(struct dp_job *job, const struct dp_item *base, uint32_t *ret)
{
	struct dp_plan *plan = &job->item->plan;
	const struct dp_hop none = {0};
	plan->len = base->plan.len;
	plan->changed = base->plan.changed;
	plan->springboard = base->plan.springboard;
	job->item->springboard = base->springboard;
	if (!plan->springboard)
		return dp_item_enter(job->planner, job->item, NULL, &none, ret);
	dp_plan_pair(plan, plan->springboard, plan->site, false);
	DP_TRY(redirect(job->planner, base, plan->entry));
	struct dp_error *err = dp_item_enter(job->planner, job->item, NULL, &none, ret);
	if (err)
		dp_error_destroy(redirect(job->planner, base, base->plan.entry));
	return err;
}

/* Another probe at the same site: its stub continues with the existing one. */
static struct dp_error *stack(struct dp_job *job, uint32_t below, uint32_t *ret)
{
	const struct dp_item *base = dp_sites_item(job->planner->sites, below);
	const struct dp_stub_tail code = {NULL, 0, base->plan.entry};
	struct dp_item item;
	dp_item_init(&item, job->request, job->request->text, base->plan.site);
	item.below = below;
	item.plan.tactic = base->plan.tactic;
	item.plan.guarded = base->plan.guarded;
	memcpy(item.plan.old_bytes, base->plan.new_bytes, sizeof(item.plan.old_bytes));
	memcpy(item.plan.new_bytes, base->plan.new_bytes, sizeof(item.plan.new_bytes));
	item.plan.ninterior = base->plan.ninterior;
	memcpy(item.plan.interior, base->plan.interior, sizeof(item.plan.interior));
	job->item = &item;
	DP_TRY(dp_stubs_put(job->planner, job->request->text, job->request, &code, &item.plan));
	item.plan.displaced = base->plan.displaced;
	struct dp_error *err = base->plan.springboard || base->plan.tactic == DP_TACTIC_TRAP ? jump_as_before(job, base, ret)
	                                                                                     : jump_anew(job, base, ret);
	if (err)
		dp_stubs_drop(job->planner, &item.plan);
	return err;
}

static struct dp_error *place_again(struct dp_job *job, unsigned allowed, uint32_t at, uint32_t *ret)
{
	struct dp_item *item = dp_sites_item(job->planner->sites, at);
	if (item->foreign || !(allowed >> item->plan.tactic & 1))
		return dp_error(DP_TAG_OVERLAP, "the probe at 0x%" PRIx64 " is in the way", item->plan.site);
	if (item->asked)
		return stack(job, at, ret);
	*ret = at;
	return promote(job, item);
}

/* ---- all ------------------------------------------------------------------------------------------------------------- */

/* Whether the instruction could run from a stub at all. Checked first, so that the tactics' refusals do not hide it. */
static struct dp_error *check_relocatable(const struct dp_insn *insn)
{
	struct dp_buf scratch;
	if (insn->flow == DP_FLOW_NEXT && !insn->disp_at)
		return NULL;
	dp_buf_init(&scratch);
	struct dp_error *err = dp_relocate(insn, insn->addr, &scratch);
	dp_buf_fini(&scratch);
	return err;
}

static struct dp_error *check_keep(const struct dp_text *text, const struct dp_insn *insn)
{
	const struct dp_protected *keep = dp_text_protected(text, insn->addr, insn->len);
	if (!keep)
		return NULL;
	return dp_error(DP_TAG_RSEQ, "0x%" PRIx64 " is in [0x%" PRIx64 ", 0x%" PRIx64 "), which must not change: %s",
	                insn->addr, keep->start, keep->start + keep->size, keep->why);
}

/* A jump from the head changes bytes that the branch leads to. */
static struct dp_error *check_entered(const struct dp_job *job, const uint8_t *bytes)
{
	const struct dp_text *text = job->request->text;
	const uint64_t site = job->request->site;
	const struct dp_range function = {text->function, text->size};
	if (!dp_sweep_may_be_entered(bytes) || site - function.start >= function.size)
		return NULL;
	const struct dp_sweep *sweep = dp_analysis_sweep(dp_planner_known(job->planner, text), text, &function);
	if (!sweep || !dp_sweep_is_entered(sweep, site, job->first.len))
		return NULL;
	return dp_error(DP_TAG_NOT_BOUNDARY, "a branch of the function leads into the middle of the instruction at 0x%" PRIx64,
	                site);
}

struct dp_error *dp_place(struct dp_planner *planner, const struct dp_request *request, bool traps, uint32_t *ret)
{
	struct dp_job job = {.planner = planner, .request = request, .fresh = planner->variant & 1};
	const unsigned allowed = request->tactics ? request->tactics : DP_TACTICS_JUMPS;
	size_t n;
	const uint8_t *bytes = dp_text_at(request->text, request->site, &n);
	if (!bytes)
		return dp_error(DP_TAG_NOT_CODE, "0x%" PRIx64 " is not in an executable segment of its module", request->site);
	DP_TRY(dp_decode(bytes, n, request->site, &job.first));
	job.first.guarded = job.first.flow == DP_FLOW_TRAP && planner->runtime.faults;
	DP_TRY(check_relocatable(&job.first));
	DP_TRY(check_keep(request->text, &job.first));
	DP_TRY(check_entered(&job, bytes));
	uint32_t at = dp_sites_at(planner->sites, request->site);
	return at == DP_NO_ITEM ? place_new(&job, allowed, traps, ret) : place_again(&job, allowed, at, ret);
}

static void give_back(struct dp_planner *planner, const struct dp_item *item)
{
	const struct dp_plan *plan = &item->plan;
	const struct dp_plan *below = item->below == DP_NO_ITEM ? NULL : &dp_sites_item(planner->sites, item->below)->plan;
	if (plan->springboard && below && below->springboard == plan->springboard)
		dp_error_destroy(redirect(planner, item, below->entry));
	else if (plan->springboard)
		dp_pages_drop(planner->pages, plan->springboard, item->springboard);
	dp_stubs_drop(planner, plan);
}

void dp_unplace(struct dp_planner *planner, uint32_t i)
{
	struct dp_item *item = dp_sites_item(planner->sites, i);
	dp_sites_leave(planner->sites, i);
	give_back(planner, item);
	for (uint8_t k = 0; k < item->plan.nsupports; k++) {
		struct dp_item *support = dp_sites_item(planner->sites, item->support[k]);
		if (support->live && !support->nusers && !support->asked && !support->foreign)
			dp_unplace(planner, item->support[k]);
	}
}

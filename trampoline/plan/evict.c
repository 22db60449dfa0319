/* SPDX-License-Identifier: MIT */
/*
 * Evicts neighbours. An evicted instruction becomes a jump to a stub that runs it and jumps back to after it. Its head stays an
 * entry, and the following heads do not change, so control flow does not matter.
 *
 * successor   The upper bytes of a short site's rel32 are its successors' bytes. If one or two of those are evicted, they can be
 *             chosen:
 *
 *                 31 c0         e9 xx|e9 yy yy|ff ff     the site's jump: e9, xx e9 yy yy; the successor's: e9, yy yy ff ff
 *                 89 d1 ..
 *
 * neighbour   The site becomes a short jump (eb) to a jump embedded in an instruction within reach, which is evicted for that:
 *             its first bytes are its own jump, the following ones the site's. A site of one byte has only the eb: the next
 *             instruction's first byte decides where it leads, unless that is evicted too.
 *
 * Evicted instructions must be instructions, not data: they are in a function that decodes from its start to its end, or follow
 * the site without a jump in between.
 */
#include "trampoline/plan/evict.h"

#include "trampoline/arch/x86_64/relocate/relocate.h"
#include "trampoline/code/text.h"

#include <string.h>

#define FOLLOWERS 4u   /* bytes of a jump after a site's own */
#define SHARE     256u /* of the budget, for one arrangement of jumps */

/* ---- which instructions can be evicted --------------------------------------------------------------------------------- */

bool dp_search_untouched(const struct dp_search *s, uint64_t addr, uint8_t n)
{
	for (uint64_t x = addr - s->base; x < addr - s->base + n; x++)
		if (x >= DP_SEARCH_AROUND || s->state[x])
			return false;
	return true;
}

/* Whether control reaches the next instruction. Calls may never return: anything may follow them. */
static bool goes_on(const struct dp_insn *insn)
{
	return insn->flow == DP_FLOW_NEXT || insn->flow == DP_FLOW_JCC;
}

static bool covers(const struct dp_sweep *sweep, uint64_t addr)
{
	return addr - sweep->start < sweep->size;
}

static struct dp_analysis *known_of(const struct dp_search *s)
{
	return dp_planner_known(s->job->planner, &s->job->item->text);
}

/* Analyses the site's own function. Its place in the list is reserved. */
static void analyse_own(struct dp_search *s)
{
	s->sweep[0] = dp_analysis_sweep(known_of(s), &s->job->item->text, &s->own);
	s->own.size = 0;
	if (!s->sweep[0])
		s->sweep[0] = s->sweep[--s->nsweeps];
}

/* The function around `addr`, NULL if unknown. */
static const struct dp_sweep *sweep_at(struct dp_search *s, uint64_t addr)
{
	struct dp_range function;
	if (addr - s->own.start < s->own.size)
		analyse_own(s);
	for (uint8_t i = 0; i < s->nsweeps; i++)
		if (s->sweep[i] && covers(s->sweep[i], addr))
			return s->sweep[i];
	if (addr - s->gap.start < s->gap.size || s->nsweeps == DP_SEARCH_SWEEPS)
		return NULL;
	if (!dp_text_function(&s->job->item->text, addr, &function)) {
		s->gap = (struct dp_range){addr, function.start > addr ? function.start - addr : 0};
		return NULL;
	}
	const struct dp_sweep *sweep = dp_analysis_sweep(known_of(s), &s->job->item->text, &function);
	if (sweep)
		s->sweep[s->nsweeps++] = sweep;
	return sweep;
}

static bool is_lost(struct dp_search *s)
{
	const uint64_t site = s->job->request->site;
	if (s->lost == DP_LOST_UNKNOWN) {
		const struct dp_sweep *own = sweep_at(s, site);
		s->lost = own && !own->length[site - own->start] ? DP_LOST : DP_NOT_LOST;
	}
	return s->lost == DP_LOST;
}

static bool is_trusted(struct dp_search *s, const struct dp_sweep *sweep)
{
	return sweep && sweep->good && !(covers(sweep, s->job->request->site) && is_lost(s));
}

uint8_t dp_search_length(struct dp_search *s, uint64_t addr)
{
	const struct dp_sweep *sweep = sweep_at(s, addr);
	return is_trusted(s, sweep) ? sweep->length[addr - sweep->start] : 0;
}

void dp_search_measure(struct dp_search *s)
{
	const uint64_t addr = s->base + s->measured;
	const struct dp_sweep *sweep = sweep_at(s, addr);
	const struct dp_range in = sweep ? (struct dp_range){sweep->start, sweep->size} : s->gap;
	const uint64_t left = DP_SEARCH_AROUND - s->measured;
	uint64_t run = addr - in.start < in.size ? in.start + in.size - addr : 1;
	run = run < left ? run : left;
	if (is_trusted(s, sweep))
		memcpy(s->length + s->measured, sweep->length + (addr - sweep->start), run);
	else
		memset(s->length + s->measured, 0, run);
	s->measured += run;
}

/* Certain padding after a function. */
static bool is_padding(struct dp_search *s, const struct dp_insn *insn)
{
	const struct dp_sweep *sweep = sweep_at(s, insn->addr - 1);
	return sweep && sweep->good && insn->addr == sweep->start + sweep->size && insn->nop && insn->len > 1;
}

/* The instruction at `addr`, if it certainly is one. `follows`: control reaches it from the site. */
bool dp_search_instruction(struct dp_search *s, uint64_t addr, bool follows, struct dp_insn *ret)
{
	size_t n;
	const uint8_t *bytes = dp_text_at(&s->job->item->text, addr, &n);
	if (!bytes || !dp_decode_zydis(bytes, n, addr, ret))
		return false;
	if (follows && dp_sweep_may_be_entered(bytes)) {
		const struct dp_sweep *sweep = sweep_at(s, addr);
		return sweep && !dp_sweep_is_entered(sweep, addr, ret->len);
	}
	return follows || dp_search_length(s, addr) || is_padding(s, ret);
}

bool dp_search_may_move(const struct dp_search *s, const struct dp_insn *insn)
{
	return dp_search_untouched(s, insn->addr, insn->len) && dp_insn_may_move(insn);
}

/* ---- entering the result ---------------------------------------------------------------------------------------------- */

/* Checks with both decoders, not only the fast one: a wrong length would destroy the program. */
static bool is_certain(const struct dp_search *s, const struct dp_insn *insn)
{
	struct dp_insn again;
	size_t n;
	const uint8_t *bytes = dp_text_at(&s->job->item->text, insn->addr, &n);
	struct dp_error *err = dp_decode(bytes, n, insn->addr, &again);
	dp_error_destroy(err);
	return !err;
}

bool dp_search_note(struct dp_search *s, struct dp_error *err, uint32_t entered)
{
	if (!err)
		s->entered[s->nentered++] = entered;
	dp_error_destroy(err);
	return !err;
}

/* Reserves the springboards' places before the stubs of evicted instructions are written. */
bool dp_search_hold(struct dp_search *s)
{
	static const uint8_t filler[DP_JMP_FAR];
	for (uint8_t i = 0; i < s->knot.nhops; i++) {
		const struct dp_hop *hop = &s->knot.hop[i];
		struct dp_error *err = dp_pages_put(s->job->planner->pages, hop->target, filler, hop->springboard);
		s->held[i] = !err;
		dp_error_destroy(err);
		if (err)
			return false;
	}
	return true;
}

void dp_search_release(struct dp_search *s, uint8_t i)
{
	if (s->held[i])
		dp_pages_drop(s->job->planner->pages, s->knot.hop[i].target, s->knot.hop[i].springboard);
	s->held[i] = false;
}

/* Enters the evicted instruction's own plan, whose jump is hop `i`; the chain's jumps in its bytes end at offset `end`. */
bool dp_search_enter_victim(struct dp_search *s, const struct dp_insn *insn, uint8_t i, uint8_t end)
{
	const struct dp_hop *hop = &s->knot.hop[i];
	struct dp_planner *planner = s->job->planner;
	const struct dp_stub_tail code = {insn, 1, 0};
	struct dp_item item;
	uint32_t entered;
	if (!is_certain(s, insn))
		return false;
	dp_item_init(&item, NULL, &s->job->item->text, insn->addr);
	struct dp_error *err = dp_stubs_put(planner, &item.text, NULL, &code, &item.plan);
	if (err)
		return dp_search_note(s, err, 0);
	item.plan.tactic = DP_TACTIC_EVICT;
	item.plan.len = (uint8_t)(end - hop->at);
	item.plan.changed = item.plan.len < insn->len ? item.plan.len : insn->len;
	dp_search_release(s, i);
	err = dp_item_enter(planner, &item, &s->knot, hop, &entered);
	if (err)
		dp_stubs_drop(planner, &item.plan);
	return dp_search_note(s, err, entered);
}

void dp_search_take_back(struct dp_search *s)
{
	for (uint8_t i = 0; i < s->knot.nhops; i++)
		dp_search_release(s, i);
	while (s->nentered)
		dp_unplace(s->job->planner, s->entered[--s->nentered]);
}

/* Each arrangement has its share of the budget: a hopeless one must not use up all of it. */
bool dp_search_solve(struct dp_search *s)
{
	const unsigned share = s->room.budget < SHARE ? s->room.budget : SHARE, rest = s->room.budget - share;
	s->room.budget = share;
	bool solved = dp_chain_solve(&s->knot);
	s->room.budget += rest;
	return solved;
}

/* ---- successors ------------------------------------------------------------------------------------------------------- */

static bool enter_successors(struct dp_search *s, uint32_t *ret)
{
	struct dp_item item = *s->job->item;
	const struct dp_hop *hop = s->knot.hop;
	for (uint8_t i = s->nvictims; i-- > 0;)
		if (!dp_search_enter_victim(s, &s->victim[i], (uint8_t)(i + 1), dp_hop_end(&hop[i + 1])))
			return false;
	item.plan.tactic = DP_TACTIC_EVICT;
	item.plan.len = dp_hop_end(&hop[0]);
	item.plan.changed = s->job->first.len;
	dp_search_release(s, 0);
	return dp_search_note(s, dp_item_enter(s->job->planner, &item, &s->knot, &hop[0], ret), *ret);
}

/* By the site's length: as many prefixes as leave the site's jump a choice among pages. */
static const uint8_t hurried[DP_JMP_NEAR] = {0, 3, 1, 0, 1};

/* Tries the site with the victims after it. */
static bool try_successors(struct dp_search *s, uint32_t *ret)
{
	const struct dp_plan *plan = &s->job->item->plan;
	const size_t at = plan->site - s->base;
	dp_chain_site(&s->knot, plan->site, s->byte + at, s->state + at, s->job->first.len);
	s->knot.room = &s->room;
	if (s->job->hurry)
		s->knot.max_prefixes = hurried[s->job->first.len];
	s->knot.hop[0].entry = plan->entry;
	for (uint8_t i = 0; i < s->nvictims; i++)
		dp_chain_add(&s->knot, s->victim[i].addr, s->victim[i].len, plan->entry);
	if (!dp_search_solve(s))
		return false;
	const struct dp_plan before = *plan;
	const bool held = dp_search_hold(s);
	if (held)
		dp_search_copy(s);
	if (held && enter_successors(s, ret))
		return true;
	dp_search_take_back(s);
	dp_search_uncopy(s, &before);
	return false;
}

/* The instructions after the site that own a byte of some form of its jump, at most `most`. */
static uint8_t follow(struct dp_search *s, uint8_t most, struct dp_insn next[static FOLLOWERS])
{
	const struct dp_insn *last = &s->job->first;
	const uint64_t end = last->addr + last->len + DP_JMP_NEAR - 1;
	bool follows = true;
	uint8_t n = 0;
	for (uint64_t at = last->addr + last->len; at < end && n < most; at += last->len) {
		follows = follows && goes_on(last);
		if (!dp_search_instruction(s, at, follows, &next[n]))
			break;
		last = &next[n++];
	}
	return n;
}

static bool try_one(struct dp_search *s, const struct dp_insn *victim, uint32_t *ret)
{
	s->victim[0] = *victim;
	s->nvictims = 1;
	return dp_search_may_move(s, victim) && try_successors(s, ret);
}

/* First only the first one; then any of them, mainly the owner of the top byte; then two. */
static bool successors(struct dp_search *s, uint32_t *ret)
{
	struct dp_insn next[FOLLOWERS];
	const uint8_t n = follow(s, s->job->far ? FOLLOWERS : 1, next);
	for (uint8_t i = s->job->far; i < n; i++)
		if (try_one(s, &next[i], ret))
			return true;
	for (uint8_t i = 0; s->job->far && i + 1 < n; i++) {
		s->victim[0] = next[i];
		s->victim[1] = next[i + 1];
		s->nvictims = 2;
		if (dp_search_may_move(s, &next[i]) && dp_search_may_move(s, &next[i + 1]) && try_successors(s, ret))
			return true;
	}
	return false;
}

/* ---- all -------------------------------------------------------------------------------------------------------------- */

static void look_around(struct dp_search *s, struct dp_job *job)
{
	const struct dp_text *text = &job->item->text;
	const uint64_t site = job->request->site;
	s->job = job;
	s->nentered = 0;
	s->own = (struct dp_range){text->function, text->size};
	s->sweep[0] = NULL;
	s->nsweeps = text->size ? 1 : 0;
	s->gap.size = 0;
	s->lost = DP_LOST_UNKNOWN;
	s->measured = 0;
	memset(s->held, 0, sizeof(s->held));
	s->base = site - DP_SEARCH_BEHIND;
	dp_sites_bytes(job->planner->sites, text, s->base, DP_SEARCH_AROUND, s->byte, s->state);
	if (!text->size)
		sweep_at(s, site);
}

struct dp_error *dp_evict(struct dp_job *job, uint32_t *ret)
{
	struct dp_search s;
	look_around(&s, job);
	for (unsigned far = 0; far < (job->fresh ? 2u : 1u); far++) {
		job->far = far;
		dp_room_init(&s.room, job->planner, job);
		if (successors(&s, ret))
			return NULL;
		dp_room_init(&s.room, job->planner, job);
		if (dp_search_neighbours(&s, ret))
			return NULL;
	}
	if (job->fresh) {
		dp_room_init(&s.room, job->planner, job);
		if (dp_search_leads(&s, ret))
			return NULL;
	}
	return dp_error(DP_TAG_NO_SPACE, "no neighbouring instruction can be evicted so that a jump reaches a free address");
}

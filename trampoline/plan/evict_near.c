/* SPDX-License-Identifier: MIT */
/*
 * The site becomes a short jump to a jump embedded in an instruction within reach (explained in evict.c). If both of its bytes
 * are its own, any place within 128 bytes will do; a site of one byte leads where the next instruction's first byte says.
 */
#include "trampoline/plan/evict.h"

#include "trampoline/arch/x86_64/relocate/relocate.h"

#define SHORT_JUMP 2

static uint8_t larger(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

/* The site's part: a short jump to the embedded one. */
static bool enter_short(struct dp_search *s, uint64_t hidden, uint32_t *ret)
{
	struct dp_item item = *s->job->item;
	struct dp_plan *plan = &item.plan;
	plan->tactic = DP_TACTIC_EVICT;
	plan->len = SHORT_JUMP;
	plan->changed = s->job->first.len < SHORT_JUMP ? s->job->first.len : SHORT_JUMP;
	plan->new_bytes[0] = 0xeb;
	plan->new_bytes[1] = (uint8_t)(hidden - (plan->site + SHORT_JUMP));
	if (plan->changed < SHORT_JUMP)
		plan->old_bytes[1] = plan->new_bytes[1];
	plan->nsupports = 1;
	plan->support[0] = s->victim[0].addr;
	dp_plan_pair(plan, hidden, plan->site, false);
	dp_search_release(s, 1);
	return dp_search_note(s, dp_item_enter(s->job->planner, &item, NULL, &s->knot.hop[1], ret), *ret);
}

static bool enter_neighbour(struct dp_search *s, uint64_t hidden, uint32_t *ret)
{
	const uint8_t end = larger(dp_hop_end(&s->knot.hop[0]), dp_hop_end(&s->knot.hop[1]));
	return dp_search_enter_victim(s, &s->victim[0], 0, end) && enter_short(s, hidden, ret);
}

/* The site's jump, embedded at `hidden` in the victim. Must not rely on the site's own bytes: they are written later. */
static bool try_hidden(struct dp_search *s, uint64_t hidden, uint32_t *ret)
{
	const struct dp_plan *plan = &s->job->item->plan;
	const struct dp_insn *victim = &s->victim[0];
	const uint8_t first = (uint8_t)(hidden - victim->addr);
	const size_t at = victim->addr - s->base;
	dp_chain_site(&s->knot, victim->addr, s->byte + at, s->state + at, 0);
	s->knot.room = &s->room;
	s->knot.max_prefixes = s->job->far ? DP_MAX_PREFIXES : s->job->fresh ? 1 : 0;
	if (first + DP_JMP_NEAR > (int)DP_SITE_SPAN)
		return false;
	if (s->knot.max_prefixes + DP_JMP_NEAR + first > (int)DP_SITE_SPAN)
		s->knot.max_prefixes = (uint8_t)(DP_SITE_SPAN - DP_JMP_NEAR - first);
	dp_chain_add(&s->knot, victim->addr, first, plan->entry);
	dp_chain_add(&s->knot, hidden, (uint8_t)(victim->len - first), plan->entry);
	for (uint64_t x = plan->site; x < plan->site + s->job->first.len; x++)
		if (x - victim->addr < DP_CHAIN_BYTES)
			s->knot.bad[x - victim->addr] = true;
	if (!dp_search_solve(s))
		return false;
	if (dp_search_hold(s) && enter_neighbour(s, hidden, ret))
		return true;
	dp_search_take_back(s);
	return false;
}

/* Whether the site's short jump reaches the address. */
static bool in_reach(const struct dp_search *s, uint64_t hidden)
{
	const uint64_t from = s->job->request->site + SHORT_JUMP;
	if (s->job->first.len >= SHORT_JUMP)
		return hidden - from + 128 < 256;
	const size_t at = s->job->request->site + 1 - s->base;
	return !(s->state[at] & DP_BYTE_UNKNOWN) && hidden == from + (uint64_t)(int64_t)(int8_t)s->byte[at];
}

/* The best offset of the embedded jump: all its bytes are its own, and some bytes of the victim's own jump are too. */
static uint8_t best_in(uint8_t len)
{
	return len >= 2 * DP_JMP_NEAR ? DP_JMP_NEAR : (uint8_t)(len - DP_JMP_NEAR);
}

/* A quick check whether the instruction has an offset for the embedded jump. */
static bool may_host(const struct dp_search *s, uint64_t addr, uint8_t len)
{
	if (!dp_search_untouched(s, addr, len))
		return false;
	if (s->job->hurry)
		return len > DP_JMP_NEAR + 1 && in_reach(s, addr + best_in(len));
	for (uint8_t first = 1; first < len; first++)
		if (in_reach(s, addr + first))
			return true;
	return false;
}

static bool neighbour(struct dp_search *s, uint64_t addr, uint32_t *ret)
{
	const uint64_t site = s->job->request->site;
	struct dp_insn *victim = &s->victim[0];
	if (!may_host(s, addr, s->length[addr - s->base]))
		return false;
	if (!dp_search_instruction(s, addr, false, victim) || !dp_search_may_move(s, victim))
		return false;
	if (addr < site + SHORT_JUMP && addr + victim->len > site)
		return false;
	const uint8_t best = best_in(victim->len); /* the only one tried in a hurry */
	if (victim->len > DP_JMP_NEAR + 1 && in_reach(s, addr + best) && try_hidden(s, addr + best, ret))
		return true;
	for (uint8_t first = 1; !s->job->hurry && first < victim->len; first++)
		if (first != best && in_reach(s, addr + first) && try_hidden(s, addr + first, ret))
			return true;
	return false;
}

#define AROUND (DP_SEARCH_BEHIND + SHORT_JUMP + 128u)

/* Longer instructions first. */
bool dp_search_neighbours(struct dp_search *s, uint32_t *ret)
{
	for (unsigned round = 0; round < (s->job->hurry ? 1u : 2u); round++)
		for (uint64_t at = s->base; at < s->base + AROUND && s->room.budget; at++) {
			const uint8_t len = dp_search_length_at(s, at - s->base);
			if (len > 1 && (len > DP_JMP_NEAR) == !round && neighbour(s, at, ret))
				return true;
		}
	return false;
}

/* ---- a site of one byte whose next instruction is evicted too --------------------------------------------------------- */

static void look_again(struct dp_search *s)
{
	dp_sites_bytes(s->job->planner->sites, &s->job->item->text, s->base, DP_SEARCH_AROUND, s->byte, s->state);
}

/* The instruction that contains `hidden`, if it may have a jump embedded there. */
static bool host_of(struct dp_search *s, uint64_t hidden, uint64_t behind, struct dp_insn *ret)
{
	for (uint64_t at = hidden - 1; at > hidden - DP_INSN_MAX; at--) {
		uint8_t len = dp_search_length(s, at);
		if (!len)
			continue;
		return at + len > hidden && (at >= behind || at + len <= s->job->request->site) &&
		       dp_search_instruction(s, at, false, ret) && dp_search_may_move(s, ret);
	}
	return false;
}

/* The next instruction becomes a jump that starts with `lead`, which as a displacement leads to `hidden`. */
static bool try_lead(struct dp_search *s, const struct dp_insn *next, uint8_t lead, uint32_t *ret)
{
	const uint64_t hidden = s->job->request->site + SHORT_JUMP + (uint64_t)(int64_t)(int8_t)lead;
	const size_t at = next->addr - s->base;
	if (!host_of(s, hidden, next->addr + next->len, &s->victim[0]))
		return false;
	dp_chain_site(&s->knot, next->addr, s->byte + at, s->state + at, next->len);
	s->knot.lead = lead;
	s->knot.room = &s->room;
	s->knot.hop[0].entry = s->job->item->plan.entry;
	bool good = dp_search_solve(s) && dp_search_hold(s) && dp_search_enter_victim(s, next, 0, dp_hop_end(&s->knot.hop[0]));
	if (good) {
		look_again(s);
		good = dp_search_may_move(s, &s->victim[0]) && try_hidden(s, hidden, ret);
	}
	if (!good) {
		dp_search_take_back(s);
		look_again(s);
	}
	return good;
}

bool dp_search_leads(struct dp_search *s, uint32_t *ret)
{
	const struct dp_insn *first = &s->job->first;
	struct dp_insn next;
	const bool follows = first->flow == DP_FLOW_NEXT;
	if (first->len != 1 || !dp_search_instruction(s, first->addr + 1, follows, &next) || !dp_search_may_move(s, &next))
		return false;
	if (try_lead(s, &next, DP_JMP_OPCODE, ret))
		return true;
	for (size_t i = 0; i < DP_NPREFIXES && next.len > 1; i++)
		if (try_lead(s, &next, dp_prefixes[i], ret))
			return true;
	return false;
}

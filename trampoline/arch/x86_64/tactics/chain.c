/* SPDX-License-Identifier: MIT */
/*
 * First chooses the number of prefixes of each jump, which fixes prefixes and opcodes; then, from the first jump on, places for
 * the springboards. A jump's place fixes bytes of the next one's rel32: its lower ones, which matter little. So the search rarely
 * backtracks.
 *
 * Uses prefixes that e9 ignores on every processor: segment overrides, address size and REX. Not 66 (AMD truncates rip to 16
 * bits), f2, f3, f0. If a prefix is the upper byte of the jump before it, its value decides where that one leads.
 */
#include "trampoline/arch/x86_64/tactics/chain.h"

#include "trampoline/arch/x86_64/asm/encode.h"

#include <string.h>

const uint8_t dp_prefixes[DP_NPREFIXES] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67, 0x40, 0x41, 0x42, 0x43, 0x44,
                                           0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f};

uint8_t dp_hop_end(const struct dp_hop *hop)
{
	return (uint8_t)(hop->at + hop->prefixes + DP_JMP_NEAR);
}

struct level {
	struct dp_chain *knot;
	uint8_t i;
};

/* The possible values of the jump's rel32. False if it relies on a forbidden byte, or can lead nowhere. */
static bool rel_of(const struct dp_chain *knot, const struct dp_hop *hop, struct dp_rel *ret)
{
	const uint8_t end = dp_hop_end(hop);
	*ret = (struct dp_rel){.end = knot->base + end};
	if (end > DP_CHAIN_BYTES)
		return false;
	for (unsigned k = 0; k < 4; k++) {
		unsigned x = end - 4u + k;
		if (knot->bad[x])
			return false;
		if (knot->fixed[x]) {
			ret->mask |= 0xffu << 8 * k;
			ret->value |= (uint32_t)knot->byte[x] << 8 * k;
		}
	}
	/* The highest target of negative rel32: nothing below 64 KiB is usable. */
	int64_t highest = (int32_t)(ret->value | (~ret->mask & 0xffffff) | (ret->mask >> 24 ? 0 : 0x7f000000u));
	return (int64_t)ret->end + highest >= 0x10000;
}

static bool solve(struct dp_chain *knot, uint8_t i);

static bool accept(void *data, uint64_t at, uint8_t size)
{
	const struct level *level = data;
	struct dp_chain *knot = level->knot;
	struct dp_hop *hop = &knot->hop[level->i];
	const uint8_t rel_at = (uint8_t)(dp_hop_end(hop) - 4);
	const uint32_t rel = (uint32_t)(at - (knot->base + dp_hop_end(hop)));
	uint8_t byte[4];
	bool fixed[4];
	memcpy(byte, knot->byte + rel_at, sizeof(byte));
	memcpy(fixed, knot->fixed + rel_at, sizeof(fixed));
	memcpy(knot->byte + rel_at, &rel, sizeof(rel));
	memset(knot->fixed + rel_at, true, sizeof(fixed));
	hop->target = at;
	hop->springboard = size;
	knot->room->taken[knot->room->ntaken].at = at;
	knot->room->taken[knot->room->ntaken++].size = size;
	bool good = solve(knot, (uint8_t)(level->i + 1));
	knot->room->ntaken--;
	if (!good)
		memcpy(knot->byte + rel_at, byte, sizeof(byte));
	memcpy(knot->fixed + rel_at, fixed, sizeof(fixed));
	return good;
}

static bool solve(struct dp_chain *knot, uint8_t i)
{
	struct level level = {knot, i};
	struct dp_rel rel;
	if (i == knot->nhops)
		return true;
	struct dp_hop *hop = &knot->hop[i];
	if (!rel_of(knot, hop, &rel))
		return false;
	if (hop->direct && dp_rel_reaches(&rel, hop->entry))
		return accept(&level, hop->entry, 0);
	return dp_room_each(knot->room, &rel, hop->entry, accept, &level);
}

/* ---- prefixes ------------------------------------------------------------------------------------------------------------- */

/* Offset of the prefix that is the highest byte of an earlier jump's rel32 that can still be chosen, or -1: its value matters. */
static int deciding(const struct dp_chain *knot)
{
	for (uint8_t i = 0; i + 1 < knot->nhops; i++) {
		const struct dp_hop *next = &knot->hop[i + 1];
		int top = dp_hop_end(&knot->hop[i]) - 1;
		for (int x = top; x >= top - 1; x--)
			if (x >= next->at && x < next->at + next->prefixes)
				return x;
	}
	return -1;
}

static bool possible(struct dp_chain *knot)
{
	struct dp_rel rel;
	for (uint8_t i = 0; i < knot->nhops; i++)
		if (!rel_of(knot, &knot->hop[i], &rel) ||
		    (!(knot->hop[i].direct && dp_rel_reaches(&rel, knot->hop[i].entry)) && !dp_room_possible(knot->room, &rel)))
			return false;
	return true;
}

/* Solves the rest, with prefixes and opcodes fixed. */
static bool solve_values(struct dp_chain *knot)
{
	int x = deciding(knot);
	if (x < 0)
		return possible(knot) && solve(knot, 0);
	for (size_t k = 0; k < DP_NPREFIXES; k++) {
		knot->byte[x] = dp_prefixes[k];
		if (possible(knot) && solve(knot, 0))
			return true;
	}
	return false;
}

static bool solve_prefixes(struct dp_chain *knot, uint8_t i)
{
	if (i == knot->nhops)
		return solve_values(knot);
	struct dp_hop *hop = &knot->hop[i];
	const struct dp_hop saved_hop = *hop;
	uint8_t byte[DP_CHAIN_BYTES];
	bool fixed[DP_CHAIN_BYTES];
	memcpy(byte, knot->byte, sizeof(byte));
	memcpy(fixed, knot->fixed, sizeof(fixed));
	for (uint8_t n = 0; n < hop->own && n <= knot->max_prefixes; n++) {
		if (i == 0 && knot->lead && !n == (knot->lead != DP_JMP_OPCODE))
			continue;
		hop->prefixes = n;
		memset(knot->byte + hop->at, dp_prefixes[0], n);
		if (i == 0 && knot->lead)
			knot->byte[hop->at] = knot->lead;
		knot->byte[hop->at + n] = DP_JMP_OPCODE;
		memset(knot->fixed + hop->at, true, n + 1u);
		if (solve_prefixes(knot, (uint8_t)(i + 1)))
			return true;
		memcpy(knot->byte, byte, sizeof(byte));
		memcpy(knot->fixed, fixed, sizeof(fixed));
	}
	*hop = saved_hop;
	return false;
}

bool dp_chain_solve(struct dp_chain *knot)
{
	return knot->room->budget && solve_prefixes(knot, 0);
}

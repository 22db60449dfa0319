/* SPDX-License-Identifier: MIT */
/* Jumps that share bytes: whatever their targets, each jump decodes to its own target and changes no byte that must not change.
 */
#include "helper_text.h"

#include "trampoline/arch/x86_64/tactics/tactics.h"
#include "trampoline/code/text.h"
#include "trampoline/space/sites.h"

#include <criterion/criterion.h>
#include <string.h>

#define SAMPLE 3000

struct field {
	struct dp_space *space;
	struct dp_pages *pages;
	struct dp_room room;
	struct dp_chain knot;
	uint8_t state[DP_CHAIN_BYTES];
};

static void field_init(struct field *f)
{
	memset(f, 0, sizeof(*f));
	cr_assert_null(dp_space_create(&f->space));
	cr_assert_null(dp_pages_create(f->space, &f->pages));
	f->room = (struct dp_room){.pages = f->pages, .space = f->space, .fresh = true, .budget = 4096};
}

static void field_fini(struct field *f)
{
	dp_pages_destroy(f->pages);
	dp_space_destroy(f->space);
}

static void field_knot(struct field *f, uint64_t site, const uint8_t *byte, uint8_t own)
{
	f->room.budget = 4096;
	dp_chain_site(&f->knot, site, byte, f->state, own);
	f->knot.room = &f->room;
	f->knot.hop[0].entry = site + 0x10000000;
}

static void check(const struct field *f, const uint8_t *old, const bool *own)
{
	for (uint8_t i = 0; i < f->knot.nhops; i++) {
		const struct dp_hop *hop = &f->knot.hop[i];
		const uint64_t head = f->knot.base + hop->at;
		struct dp_insn made;
		struct dp_error *err = dp_decode(f->knot.byte + hop->at, DP_INSN_MAX, head, &made);
		cr_assert_null(err, "%s", err ? err->message : "");
		cr_assert_eq(made.flow, DP_FLOW_JMP);
		cr_assert_eq(made.len, dp_hop_end(hop) - hop->at);
		cr_assert_eq(made.target, hop->target, "0x%lx leads to 0x%lx, not to 0x%lx", head, made.target, hop->target);
		for (uint8_t k = 0; k < i; k++)
			cr_assert(f->knot.hop[k].target + f->knot.hop[k].springboard <= hop->target ||
			          hop->target + hop->springboard <= f->knot.hop[k].target);
	}
	for (size_t x = 0; x < DP_CHAIN_BYTES; x++)
		cr_assert(own[x] || f->knot.byte[x] == old[x], "+%zu changed", x);
}

static bool solve_at(struct field *f, const struct helper_module *m, uint64_t addr, unsigned victims)
{
	bool own[DP_CHAIN_BYTES] = {0};
	struct dp_insn insn;
	size_t n;
	const uint8_t *bytes = dp_text_at(&m->text, addr, &n);
	cr_assert(dp_decode_zydis(bytes, n, addr, &insn));
	field_knot(f, addr, bytes, insn.len);
	memset(own, true, insn.len);
	for (size_t at = insn.len; victims--; at += insn.len) {
		cr_assert(dp_decode_zydis(bytes + at, n - at, addr + at, &insn));
		if (at + insn.len > DP_CHAIN_BYTES - DP_JUMP_MAX)
			return true;
		dp_chain_add(&f->knot, addr + at, insn.len, addr + 0x20000000);
		memset(own + at, true, insn.len);
	}
	if (!dp_chain_solve(&f->knot))
		return false;
	check(f, bytes, own);
	return true;
}

static unsigned solve_many(unsigned victims)
{
	struct helper_module libc;
	struct field f;
	uint64_t seed = 31337;
	unsigned solved = 0;
	helper_libc(&libc);
	field_init(&f);
	for (int i = 0; i < SAMPLE; i++) {
		uint64_t addr = helper_random_insn(&libc, &seed);
		if (libc.code_end - addr > 64)
			solved += solve_at(&f, &libc, addr, victims);
	}
	field_fini(&f);
	return solved;
}

Test(tactics, one_jump_changes_its_own_bytes_only)
{
	cr_expect_gt(solve_many(0), SAMPLE * 9 / 10);
}

Test(tactics, jumps_that_overlap_lead_each_to_their_own_target)
{
	cr_expect_gt(solve_many(1), SAMPLE * 9 / 10);
	cr_expect_gt(solve_many(2), SAMPLE * 9 / 10);
}

/* The example in tactics.h, by hand: the tactics in turn, as room is taken away. */
Test(tactics, pun_ranges_come_from_the_bytes_that_follow)
{
	static const uint8_t code[DP_CHAIN_BYTES] = {0x48, 0x89, 0xc7, 0x31, 0xc0, 0x89, 0xd1, 0x90};
	const uint64_t at = UINT64_C(0x555555555000);
	static const uint32_t rel[] = {0xc0310000, 0x89c03100, 0xd189c031};
	static const uint32_t size[] = {0x10000, 0x100, 1};
	struct field f;
	field_init(&f);
	for (unsigned prefixes = 0; prefixes < 3; prefixes++) {
		const uint64_t lo = at + 5 + prefixes + (uint64_t)(int64_t)(int32_t)rel[prefixes];
		field_knot(&f, at, code, 3);
		cr_assert(dp_chain_solve(&f.knot));
		cr_expect_eq(f.knot.hop[0].prefixes, prefixes);
		cr_expect(f.knot.hop[0].target >= lo && f.knot.hop[0].target < lo + size[prefixes]);
		cr_assert_null(dp_space_reserve(f.space, lo, lo + size[prefixes]));
	}
	field_knot(&f, at, code, 3);
	cr_expect(!dp_chain_solve(&f.knot));
	cr_expect_eq(memcmp(f.knot.byte, code, sizeof(code)), 0, "an unsolvable chain of jumps is unchanged");
	field_fini(&f);
}

Test(tactics, no_jump_below_address_zero_nor_through_unknown_bytes)
{
	static const uint8_t code[DP_CHAIN_BYTES] = {0x90, 0x00, 0x00, 0x00, 0x90}, good[DP_CHAIN_BYTES] = {0x90, 1, 2, 3, 4};
	struct field f;
	field_init(&f);
	field_knot(&f, 0x400000, code, 1);
	cr_expect(!dp_chain_solve(&f.knot));
	field_knot(&f, 0x400000, good, 1);
	cr_expect(dp_chain_solve(&f.knot));
	f.state[3] = DP_BYTE_UNKNOWN;
	field_knot(&f, 0x400000, good, 1);
	cr_expect(!dp_chain_solve(&f.knot));
	field_fini(&f);
}

Test(tactics, every_tactic_has_a_name)
{
	for (enum dp_tactic t = DP_TACTIC_JUMP; t < DP_TACTIC_COUNT; t++) {
		enum dp_tactic found;
		cr_assert(dp_tactic_find(dp_tactic_name(t), &found));
		cr_expect_eq(found, t);
	}
	cr_expect_str_eq(dp_tactic_name(DP_TACTIC_COUNT), "none");
}

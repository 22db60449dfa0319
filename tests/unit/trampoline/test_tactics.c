/* SPDX-License-Identifier: MIT */
/* A tactic's promise: whatever target in its range is chosen, the jump decodes to it and changes no byte that is not the site's.
 */
#include "helper_text.h"

#include "trampoline/arch/x86_64/tactics.h"
#include "trampoline/text.h"

#include <criterion/criterion.h>
#include <string.h>

#define SAMPLE 5000

static const struct dp_tactic_entry *entry_of(enum dp_tactic tactic)
{
	for (size_t i = 0; i < dp_ntactics; i++)
		if (dp_tactics[i].tactic == tactic)
			return &dp_tactics[i];
	return NULL;
}

static void check_jump(const struct dp_insn *insn, const struct dp_fit *fit, const struct dp_jump *jump, uint64_t target,
                       const uint8_t *old)
{
	uint8_t bytes[16];
	struct dp_insn made;
	memcpy(bytes, old, sizeof(bytes));
	dp_jump_encode(jump, insn->addr, target, bytes);
	cr_assert_eq(memcmp(bytes + fit->changed, old + fit->changed, sizeof(bytes) - fit->changed), 0,
	             "0x%lx: a byte behind +%u changed", insn->addr, fit->changed);
	struct dp_error *err = dp_decode(bytes, sizeof(bytes), insn->addr, &made);
	cr_assert_null(err, "%s", err ? err->message : "");
	cr_assert_eq(made.flow, DP_FLOW_JMP);
	cr_assert_eq(made.len, dp_jump_len(jump));
	cr_assert_eq(made.target, target, "0x%lx leads to 0x%lx instead of 0x%lx", insn->addr, made.target, target);
}

static void check_fit(const struct helper_module *m, const struct dp_insn *insn, const struct dp_fit *fit, uint64_t *seed)
{
	size_t n;
	const uint8_t *old = dp_text_at(&m->text, insn->addr, &n);
	cr_assert(n >= 16);
	for (int i = 0; i < fit->njumps; i++) {
		const struct dp_jump *jump = &fit->jump[i];
		cr_assert_leq(jump->lo, jump->hi);
		check_jump(insn, fit, jump, jump->lo, old);
		check_jump(insn, fit, jump, jump->hi, old);
		check_jump(insn, fit, jump, jump->lo + helper_random(seed) % (jump->hi - jump->lo + 1), old);
	}
}

static void check_tactic(enum dp_tactic tactic, bool (*applies)(const struct dp_insn *insn))
{
	struct helper_module libc;
	uint64_t seed = 31337;
	helper_libc(&libc);
	for (int i = 0; i < SAMPLE; i++) {
		struct dp_insn insn;
		struct dp_fit fit;
		size_t n;
		uint64_t addr = helper_random_insn(&libc, &seed);
		const uint8_t *bytes = dp_text_at(&libc.text, addr, &n);
		cr_assert(dp_decode_zydis(bytes, n, addr, &insn));
		struct dp_error *err = entry_of(tactic)->fit(&libc.text, &insn, &fit);
		cr_assert_eq(!err, applies(&insn), "%s", err ? err->message : "fits");
		if (!err)
			check_fit(&libc, &insn, &fit, &seed);
		dp_error_destroy(err);
	}
}

static bool holds_a_jump(const struct dp_insn *insn)
{
	return insn->len >= 5;
}

static bool is_short(const struct dp_insn *insn)
{
	return insn->len < 5;
}

Test(tactics, jump_leads_to_any_target_and_changes_five_bytes)
{
	check_tactic(DP_TACTIC_JUMP, holds_a_jump);
}

Test(tactics, pun_leads_into_its_ranges_and_keeps_the_successors)
{
	check_tactic(DP_TACTIC_PUN, is_short);
}

/* The example of the lesson in tactics.c, by hand. */
Test(tactics, pun_ranges_come_from_the_bytes_that_follow)
{
	static const uint8_t code[16] = {0x48, 0x89, 0xc7, 0x31, 0xc0, 0x89, 0xd1, 0x90};
	const uint64_t at = UINT64_C(0x555555555000);
	struct helper_module m;
	struct dp_insn insn;
	struct dp_fit fit;
	helper_code(&m, at, code, sizeof(code));
	cr_assert_null(dp_decode(code, sizeof(code), at, &insn));
	cr_assert_null(entry_of(DP_TACTIC_PUN)->fit(&m.text, &insn, &fit));
	cr_assert_eq(fit.njumps, 3);
	cr_expect_eq(fit.jump[0].lo, at + 5 + (uint64_t)(int64_t)(int32_t)0xc0310000);
	cr_expect_eq(fit.jump[0].hi, at + 5 + (uint64_t)(int64_t)(int32_t)0xc031ffff);
	cr_expect_eq(fit.jump[1].lo, at + 6 + (uint64_t)(int64_t)(int32_t)0x89c03100);
	cr_expect_eq(fit.jump[1].hi, at + 6 + (uint64_t)(int64_t)(int32_t)0x89c031ff);
	cr_expect_eq(fit.jump[2].lo, at + 7 + (uint64_t)(int64_t)(int32_t)0xd189c031);
	cr_expect_eq(fit.jump[2].hi, fit.jump[2].lo);
}

/* Ranges below address 0 are no ranges; at the end of a segment nothing follows that could be kept. */
Test(tactics, DP_TOO_SHORT_where_nothing_can_be_reached)
{
	static const uint8_t code[] = {0x90, 0x00, 0x00, 0x00, 0x90}, end[] = {0x90, 0x90, 0x90};
	const uint64_t at = 0x400000;
	struct helper_module m;
	struct dp_insn insn;
	struct dp_fit fit;
	helper_code(&m, at, code, sizeof(code));
	cr_assert_null(dp_decode(code, 1, at, &insn));
	struct dp_error *err = entry_of(DP_TACTIC_PUN)->fit(&m.text, &insn, &fit);
	cr_expect(err && err->tag == DP_TAG_TOO_SHORT);
	dp_error_destroy(err);
	helper_code(&m, at, end, sizeof(end));
	err = entry_of(DP_TACTIC_PUN)->fit(&m.text, &insn, &fit);
	cr_expect(err && err->tag == DP_TAG_TOO_SHORT);
	dp_error_destroy(err);
}

Test(tactics, every_tactic_has_a_name)
{
	for (size_t i = 0; i < dp_ntactics; i++)
		cr_expect_str_neq(dp_tactic_name(dp_tactics[i].tactic), "none");
	cr_expect_str_eq(dp_tactic_name(DP_TACTIC_WINDOW), "window");
}
